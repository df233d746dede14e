package main

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/dataset"
)

// TestAthenaTypes: the columns that Athena is told of are those that DuckDB finds
// in the files, in all tables, in both forms of cells and without rows.
func TestAthenaTypes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkExamples(t, dir)
	types := strings.NewReplacer(`STRUCT("row" INTEGER, col INTEGER)[]`, "array<struct<row:int,col:int>>", "INTEGER[][]", "array<array<int>>",
		"BOOLEAN", "boolean", "DOUBLE", "double", "BIGINT", "bigint", "INTEGER", "int", "VARCHAR", "string", "BLOB", "binary")
	all := []string{"--keep", "level,author", "--columns", "all," + strings.Join(dataset.Extras(), ",")}
	for job, args := range map[string][]string{
		"text": slices.Concat(all, []string{"--cells", "text"}), "bits": slices.Concat(all, []string{"--cells", "bits"}), "counts": {"--columns", "none"},
	} {
		flipmill(t, dir, append([]string{"run", "examples/levels.csv", "--job", job}, args...)...)
		lines, err := command(t, dir, "query", "out/job="+job, "--for", "athena").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"results", "rejects", "stats"} {
			declared := regexp.MustCompile(`TABLE flipmill\.` + table + ` \((.*)\) STORED`).FindSubmatch(lines)
			if declared == nil {
				t.Fatalf("no table %s in\n%s", table, lines)
			}
			text, err := query(dir, "SELECT column_name, column_type FROM (DESCRIBE FROM read_parquet('out/job="+job+"/"+table+"/*.parquet', hive_partitioning = false))")
			if err != nil {
				t.Fatal(err)
			}
			records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, r := range records[1:] {
				want = append(want, "`"+r[0]+"` "+types.Replace(r[1]))
			}
			if got := string(declared[1]); got != strings.Join(want, ", ") {
				t.Errorf("%s of %s: got\n%s\nwant\n%s", table, job, got, strings.Join(want, ", "))
			}
		}
	}
}
