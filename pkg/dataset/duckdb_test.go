//go:build cluster

// What DuckDB reads, which takes long to link. The race detector sees nothing of a C++
// library, and nothing here is concurrent.

package dataset_test

import (
	"database/sql"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2" // the reader that is not ours

	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/puzzle"
	"github.com/flipmill/flipmill/pkg/tally"
)

// duck returns an in-memory DuckDB.
func duck(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// query returns the rows of a query, a line each, blanks between the values.
func query(t *testing.T, db *sql.DB, text string) []string {
	t.Helper()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, v := range values {
			words = append(words, fmt.Sprint(v))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return lines
}

// files are SQL names for the tables of a dataset.
func files(path string) (results, rejects, stats string) {
	return "'" + path + "/results/*.parquet'", "'" + path + "/rejects/*.parquet'", "'" + path + "/stats/*.parquet'"
}

// DuckDB finds the same rows as we put in, in every form of cells.
func TestDuckDBRows(t *testing.T) {
	db := duck(t)
	labelled := testSpec(t, "plus", puzzle.Either)
	labelled.Keep = []string{"level", "author name"}
	for _, spec := range append(variants(testSpec(t, "plus", puzzle.Either)), labelled) {
		c := smallCorpus(t, spec)
		results, _, _ := files(c.write(t, t.TempDir()))
		cells := func(column string) string { return column }
		if spec.Cells == "bits" { // the bits of all bytes, without the padding
			cells = func(column string) string { return "left(" + column + "::BIT::VARCHAR, rows * cols)" }
		}
		var kept strings.Builder
		for _, name := range spec.Keep {
			kept.WriteString(`, "` + name + `"`)
		}
		got := query(t, db, `SELECT puzzle_index, source, line, id, rule, target, rows, cols, `+cells("board")+`, status,
			min_moves, `+cells("solution")+`, reached, nullity, optimal_count`+kept.String()+` FROM `+results+` ORDER BY puzzle_index`)
		text := spec
		text.Cells = "text"
		var want []string
		for _, a := range c.chunks {
			for _, row := range wantRows(text, a) {
				// wantRows puts the second source behind half of the chunk's records.
				want = append(want, strings.NewReplacer(`"`, "", "null", "nil").Replace(row))
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %s: got %d rows, want %d; first is\n%s, want\n%s", spec.Cells, spec.Compression, len(got), len(want), got[0], want[0])
		}
	}
}

// Types, conservation, statistics and histogram as DuckDB sees them.
func TestDuckDBTables(t *testing.T) {
	db := duck(t)
	c := smallCorpus(t, testSpec(t, "plus", puzzle.Either))
	path := c.write(t, t.TempDir())
	results, rejects, stats := files(path)
	types := func(table string) string {
		return strings.Join(query(t, db, "SELECT column_name || ' ' || column_type FROM (DESCRIBE FROM read_parquet("+table+", hive_partitioning = false))"), ", ")
	}
	total := &tally.Tally{}
	for _, a := range c.chunks {
		total.AddChunk(&a.chunk, a.answers)
	}
	for _, q := range []struct{ got, want string }{
		{types(results), "puzzle_index BIGINT, source VARCHAR, line BIGINT, id VARCHAR, rule VARCHAR, target VARCHAR, rows INTEGER, cols INTEGER, board VARCHAR, status VARCHAR, min_moves INTEGER, solution VARCHAR, reached VARCHAR, nullity INTEGER, optimal_count BIGINT"},
		{types(rejects), "puzzle_index BIGINT, source VARCHAR, line BIGINT, reason VARCHAR, detail VARCHAR, raw VARCHAR"},
		{types(stats), "rule VARCHAR, target VARCHAR, rows INTEGER, cols INTEGER, nullity INTEGER, status VARCHAR, min_moves INTEGER, boards BIGINT, unique_optimal_boards BIGINT, optimal_solutions BIGINT"},
		{one(t, db, "SELECT count(*), count(DISTINCT puzzle_index), min(puzzle_index), max(puzzle_index) FROM (SELECT puzzle_index FROM "+results+" UNION ALL SELECT puzzle_index FROM "+rejects+")"), "479 479 0 478"},
		{one(t, db, "SELECT count(*), min(reason), max(raw) FROM "+rejects), "4 unknown_symbol 01x\uFFFD0"},
		{one(t, db, "SELECT sum(boards)::BIGINT FROM "+stats), fmt.Sprint(total.Boards())},
		{one(t, db, "SELECT count(*) FROM "+results+" WHERE (status = 'solved') <> (min_moves IS NOT NULL) OR (status = 'solved') <> (optimal_count IS NOT NULL) OR (status = 'impossible') <> (solution IS NULL) OR (solution IS NULL) <> (reached IS NULL)"), "0"},
		{one(t, db, "SELECT count(*) FROM "+results+" WHERE status = 'solved' AND min_moves <> length(replace(solution, '0', ''))"), "0"},
		// What the statistics say is what the rows add up to, in both directions.
		{one(t, db, "SELECT count(*) FROM (WITH counted AS (SELECT rule, target, rows, cols, nullity, status, min_moves, count(*) AS boards, count(*) FILTER (optimal_count = 1) AS u, coalesce(sum(optimal_count), 0)::BIGINT AS o FROM "+results+" GROUP BY ALL), kept AS (SELECT * EXCLUDE (job) FROM read_parquet("+stats+", hive_partitioning = true)) (FROM counted EXCEPT FROM kept) UNION ALL (FROM kept EXCEPT FROM counted))"), "0"},
	} {
		if q.got != q.want {
			t.Errorf("got  %s\nwant %s", q.got, q.want)
		}
	}
	var histogram []string
	for moves, boards := range total.Histogram() {
		if boards > 0 {
			histogram = append(histogram, fmt.Sprint(moves, " ", boards))
		}
	}
	if got := query(t, db, "SELECT min_moves, count(*) FROM "+results+" WHERE status = 'solved' GROUP BY ALL ORDER BY ALL"); !reflect.DeepEqual(got, histogram) {
		t.Errorf("histogram %v, want %v", got, histogram)
	}
}

func one(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	return strings.Join(query(t, db, text), "\n")
}

// An empty dataset has its tables, with their columns.
func TestDuckDBEmpty(t *testing.T) {
	db := duck(t)
	results, rejects, stats := files(corpus{spec: testSpec(t, "plus", puzzle.Zero)}.write(t, t.TempDir()))
	for _, table := range []string{results, rejects, stats} {
		if got := one(t, db, "SELECT count(*) FROM "+table); got != "0" {
			t.Errorf("%s has %s rows", table, got)
		}
	}
	if got := len(query(t, db, "DESCRIBE FROM "+results)); got != len(dataset.Columns())+1 { // job, from the path
		t.Errorf("%d columns", got)
	}
}

// Row groups of many boards, where cells are packed by us, and readers prune by
// statistics.
func TestDuckDBLarge(t *testing.T) {
	db := duck(t)
	spec := testSpec(t, "plus", puzzle.Zero)
	c := corpus{spec: spec}
	for i := range 2 {
		c.chunks = append(c.chunks, makeChunk(random(uint64(i)), spec, int64(i)*20000, map[puzzle.Size]int{{Rows: 9, Cols: 9}: 20000}, 0))
	}
	path := c.write(t, t.TempDir())
	results, _, _ := files(path)
	if got := query(t, db, "SELECT count(*), count(DISTINCT board), sum(length(board))::BIGINT FROM "+results); got[0] != "40000 40000 3240000" {
		t.Errorf("got %v", got)
	}
	run := c.chunks[1].chunk.Runs[0]
	board := string(run.AppendText(nil, 777))
	if got := one(t, db, "SELECT puzzle_index FROM "+results+" WHERE board = '"+board+"'"); got != "20777" {
		t.Errorf("got %s", got)
	}
	if got := one(t, db, "SELECT board FROM "+results+" WHERE puzzle_index = 20777"); got != board {
		t.Errorf("got %s", got)
	}
	meta := "FROM parquet_metadata('" + path + "/results/part-00000.parquet') WHERE path_in_schema = "
	if got := query(t, db, "SELECT stats_min_value, stats_max_value, row_group_num_rows "+meta+"'puzzle_index' ORDER BY row_group_id"); !reflect.DeepEqual(got, []string{"0 19999 20000", "20000 39999 20000"}) {
		t.Errorf("got %v", got)
	}
	info, err := os.Stat(filepath.Join(path, "results/part-00000.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if perRow := float64(info.Size()) / 40000; perRow > 24 { // two boards of 81 bits, of which 1 in 7 has no solution, and 3 bytes
		t.Errorf("%.1f bytes per row", perRow)
	}
}

// The documented queries work, and find something.
func TestDuckDBDocumented(t *testing.T) {
	db := duck(t)
	path := smallCorpus(t, testSpec(t, "plus", puzzle.Either)).write(t, t.TempDir())
	spec := withExtras(testSpec(t, "plus", puzzle.Zero))
	extras := corpus{spec, []answered{solved(t, random(1), spec, puzzle.Size{Rows: 4, Cols: 5})}}.write(t, t.TempDir())
	text, err := os.ReadFile("../../docs/dataset.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```sql\n")[1:]
	if len(blocks) < 7 {
		t.Errorf("%d queries, want at least 7", len(blocks))
	}
	for _, block := range blocks {
		sql, _, _ := strings.Cut(block, "```")
		if rows := query(t, db, strings.NewReplacer("out/job=demo", path, "out/job=extras", extras).Replace(sql)); len(rows) == 0 || strings.Contains(rows[0], "nil") {
			t.Errorf("%s finds %q", sql, rows)
		}
	}
}

// TestExtras compares what DuckDB reads of the extra columns with what trying
// everything finds, in every form of cells; and Verify finds nothing wrong.
func TestExtras(t *testing.T) {
	sizes := []puzzle.Size{{Rows: 1, Cols: 1}, {Rows: 1, Cols: 2}, {Rows: 2, Cols: 3}, {Rows: 3, Cols: 2}, {Rows: 3, Cols: 3}, {Rows: 3, Cols: 4}, {Rows: 2, Cols: 5}}
	spaces := map[puzzle.Size]*space{}
	for _, size := range sizes {
		spaces[size] = newSpace(size)
	}
	db := duck(t)
	for _, target := range []puzzle.Target{puzzle.Zero, puzzle.One, puzzle.Either} {
		easier := map[puzzle.Size][]float64{}
		for size, s := range spaces {
			easier[size] = s.easier(target)
		}
		specs := variants(withExtras(testSpec(t, "plus", target)))
		if target != puzzle.Either {
			specs = specs[:1]
		}
		for _, spec := range specs {
			rng := random(uint64(target))
			c := corpus{spec: spec, chunks: []answered{solved(t, rng, spec, sizes...), solved(t, rng, spec, sizes[4:]...), solved(t, rng, spec, sizes[3])}}
			for i := range c.chunks[1:] {
				c.chunks[i+1].chunk.First = c.chunks[i].chunk.First + int64(c.chunks[i].chunk.Records())
			}
			path := c.write(t, t.TempDir())
			results, _, _ := files(path)
			cells := func(column string) string { return column }
			if spec.Cells == "bits" {
				cells = func(column string) string { return "left(" + column + "::BIT::VARCHAR, rows * cols)" }
			}
			got := query(t, db, `SELECT lit, `+cells("canonical")+`, orbit_size, split, coalesce(unique_optimal::VARCHAR, 'NULL'), coalesce(max_moves::VARCHAR, 'NULL'),
				coalesce(format('{:.9f}', difficulty), 'NULL'), coalesce(`+cells("witness")+`, 'NULL'), coalesce(moves::VARCHAR, 'NULL'), board_grid::VARCHAR
				FROM `+results+` ORDER BY puzzle_index`)
			var want []string
			for _, a := range c.chunks {
				for _, run := range a.chunk.Runs {
					for i := range run.Count {
						board := 0
						fmt.Sscanf(string(run.AppendText(nil, i)), "%b", &board)
						want = append(want, spaces[run.Size].row(board, target, easier[run.Size]))
					}
				}
			}
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("%s, %s, %s: row %d of %d is\n%s, want\n%s", target, spec.Cells, spec.Compression, i, len(got), got[min(i, len(got)-1)], want[i])
				}
			}
			if report, err := dataset.Verify(path, nil); err != nil || !report.OK() || len(report.Skipped) > 0 || len(report.Checked) < 10 {
				t.Errorf("%s, %s, %s: %+v, %v", target, spec.Cells, spec.Compression, report, err)
			}
		}
	}
}

// TestExtrasOfAllRules: Verify, which works the columns out for each row again, finds
// nothing wrong whatever the rule; where a search is too long or all boards too many,
// there are nulls.
func TestExtrasOfAllRules(t *testing.T) {
	db := duck(t)
	for _, rule := range []string{"plus", "fridge", "king-torus", "x", "stencil:010/001/000", "stencil:110/000/011-torus"} {
		spec := withExtras(testSpec(t, rule, puzzle.Either))
		spec.SearchLimit = 1 << 7
		sizes := []puzzle.Size{{Rows: 9, Cols: 9}, {Rows: 3, Cols: 21}, {Rows: 6, Cols: 6}, {Rows: 20, Cols: 3}}
		if wide := (puzzle.Size{Rows: 17, Cols: 19}); spec.Rule.CheckSize(wide) == nil {
			sizes = append(sizes, wide)
		}
		c := corpus{spec, []answered{solved(t, random(2), spec, sizes...)}}
		path := c.write(t, t.TempDir())
		if report, err := dataset.Verify(path, nil); err != nil || !report.OK() || len(report.Skipped) > 0 {
			t.Errorf("%s: %+v, %v", rule, report, err)
		}
		results, _, _ := files(path)
		if got := one(t, db, `SELECT count(*) FROM `+results+` WHERE (max_moves IS NULL) <> (status <> 'solved') OR max_moves < min_moves OR (unique_optimal IS NULL) <> (status <> 'solved')
			OR (witness IS NULL) <> (status <> 'impossible') OR (moves IS NULL) <> (status = 'impossible') OR difficulty IS NOT NULL AND status <> 'solved' OR difficulty IS NULL AND status = 'solved' AND nullity < 2`); got != "0" {
			t.Errorf("%s: %s rows have a null, or none, against their status", rule, got)
		}
		if rule != "plus" {
			continue
		}
		if got := one(t, db, "SELECT status, bool_or(difficulty IS NOT NULL) FROM "+results+" WHERE rows = 9 AND status <> 'impossible' GROUP BY ALL"); got != "unproven false" {
			t.Errorf("9×9: %s", got)
		}
	}
}

// Every record is found by its index, once, and its cells are the same however
// they are stored. A column of the corpus called reason makes no reject of a row.
func TestFind(t *testing.T) {
	t.Parallel()
	db := duck(t)
	spec := testSpec(t, "plus", puzzle.Either)
	spec.Keep = []string{"reason", "detail"}
	plain := smallCorpus(t, spec).write(t, t.TempDir())
	spec.Cells = dataset.CellsBits
	path := smallCorpus(t, spec).write(t, t.TempDir())
	results, rejects, _ := files(plain)
	want := query(t, db, `SELECT puzzle_index, coalesce(board, '-'), coalesce(solution, '-'), coalesce(reason, '-') FROM (
		SELECT puzzle_index, board, solution, NULL AS reason FROM `+results+` UNION ALL
		SELECT puzzle_index, NULL, NULL, reason FROM `+rejects+`) ORDER BY puzzle_index`)
	var got []string
	for index := range int64(len(want)) {
		for row, err := range dataset.Find(path, dataset.Filter{Index: &index}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(row.Index, " ", orDash(row.Board), " ", orDash(row.Solution), " ", orDash(row.Reason)))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %d records, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
}

func orDash(text *string) string {
	if text == nil {
		return "-"
	}
	return *text
}

// Conditions hold together, and whoever has enough rows gets no more.
func TestFindConditions(t *testing.T) {
	t.Parallel()
	db := duck(t)
	output, spec := t.TempDir(), testSpec(t, "plus", puzzle.Zero)
	path := smallCorpus(t, spec).write(t, output)
	results, rejects, _ := files(path)
	reader, err := dataset.NewReader(output, "demo", spec)
	if err != nil {
		t.Fatal(err)
	}
	all := func(found iter.Seq2[dataset.Row, error], most int) (got []string) {
		for row, err := range found {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, fmt.Sprint(row.Index)); len(got) == most {
				break
			}
		}
		return got
	}
	moves := int64(2)
	for _, c := range []struct {
		want  dataset.Filter
		most  int
		where string
	}{
		{dataset.Filter{}, 1000, "true"},
		{dataset.Filter{}, 3, "true"},
		{dataset.Filter{Moves: &moves}, 1000, "min_moves = 2"},
		{dataset.Filter{Moves: &moves, Status: "solved"}, 2, "min_moves = 2"},
		{dataset.Filter{Moves: &moves, Status: "impossible"}, 1000, "false"},
		{dataset.Filter{Size: puzzle.Size{Rows: 3, Cols: 7}}, 1000, "rows = 3 AND cols = 7"},
		{dataset.Filter{Size: puzzle.Size{Rows: 3, Cols: 7}, Moves: &moves}, 1000, "rows = 3 AND cols = 7 AND min_moves = 2"},
		{dataset.Filter{Size: puzzle.Size{Rows: 77, Cols: 7}}, 1000, "false"},
		{dataset.Filter{Status: "unproven"}, 1000, "status = 'unproven'"},
		{dataset.Filter{From: 250}, 1000, "puzzle_index >= 250"},
		{dataset.Filter{From: 250, Moves: &moves}, 1, "puzzle_index >= 250 AND min_moves = 2"},
		{dataset.Filter{From: 10_000}, 1000, "false"},
	} {
		want := query(t, db, fmt.Sprintf("SELECT puzzle_index FROM %s WHERE %s ORDER BY puzzle_index LIMIT %d", results, c.where, c.most))
		if got := all(dataset.Find(path, c.want), c.most); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.where, got, want)
		}
		if got := all(reader.Find(t.Context(), c.want), c.most); !slices.Equal(got, want) {
			t.Errorf("%s: a reader found %v, want %v", c.where, got, want)
		}
	}
	want := query(t, db, "SELECT puzzle_index FROM "+rejects+" WHERE puzzle_index > 300 ORDER BY ALL")
	if got := all(dataset.Find(path, dataset.Filter{Status: dataset.Rejected, From: 301}), 1000); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("rejects: got %v, want %v", got, want)
	}
	if got := all(reader.Find(t.Context(), dataset.Filter{Status: dataset.Rejected, Moves: &moves}), 1000); got != nil {
		t.Errorf("rejects with a minimum: %v", got)
	}
}
