//go:build cluster

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/flipmill/flipmill/pkg/view"
)

// TestVerbsAgree: jobs of no record, of one, and of one more or less than a chunk or
// a part, each by each: all end, and whoever is asked says the same of them.
func TestVerbsAgree(t *testing.T) {
	t.Parallel()
	const chunk, part = 65_536, 2 * 65_536
	c := newCluster(t, nil)
	c.run("setup")
	c.start("aggregator", "-o", "far")
	sizes := []int64{0, 1, chunk - 1, chunk, chunk + 1, part - 1, part, part + 1}
	name := func(records int64) string { return fmt.Sprintf("of-%d", records) }
	var watches []*process
	for _, records := range sizes {
		text := bytes.Repeat([]byte("1\n"), int(records))
		if err := os.WriteFile(filepath.Join(c.dir, name(records)+".txt"), text, 0o666); err != nil {
			t.Fatal(err)
		}
		// Without boards in its rows, no chunk is full before it has as many records.
		c.run("submit", name(records)+".txt", "--format", "lines", "--size", "1x1", "--part-chunks", "2", "--columns", "puzzle_index,min_moves")
		watches = append(watches, c.start("watch", name(records), "--json"))
	}
	c.start("worker", "--workers", "2")
	ends := map[string]string{} // by the job, what wait says
	text := func(v view.Status) string { data, _ := json.Marshal(v); return string(data) }
	for _, records := range sizes {
		v := ask[view.Status](c, exitOK, "wait", name(records))
		chunks := (records + chunk - 1) / chunk
		parts := max(1, int(chunks+1)/2)
		if v.State != "done" || *v.Percent != 100 || *v.Records != records || *v.Chunks != chunks || v.Parts != parts ||
			v.Committed != (view.Count{Chunks: chunks, Records: records}) || v.Received != v.Committed {
			t.Errorf("%d records: %s", records, text(v))
		}
		ends[v.Job] = text(v)
		if e := ask[*view.Explanation](c, exitOK, "why", v.Job); text(e.Status) != text(v) || len(e.Places) > 0 {
			t.Errorf("%d records: why says %s with %+v", records, text(e.Status), e.Places)
		}
		if s := ask[view.Status](c, exitOK, "status", v.Job); text(s) != text(v) {
			t.Errorf("%d records: status says %s", records, text(s))
		}
	}
	all := ask[[]view.Status](c, exitOK, "list")
	for _, v := range all {
		if text(v) != ends[v.Job] {
			t.Errorf("list says %s, wait %s", text(v), ends[v.Job])
		}
	}
	if len(all) != len(sizes) {
		t.Errorf("list has %d jobs, want %d", len(all), len(sizes))
	}
	for _, w := range watches {
		w.succeed()
		checkWatched(t, w.out.String(), 1)
	}
}
