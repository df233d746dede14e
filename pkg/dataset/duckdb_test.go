package dataset_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
