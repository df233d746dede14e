//go:build cluster

package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReport: all numbers of the page are those that DuckDB finds in the dataset.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkExamples(t, dir)
	for _, args := range [][]string{
		{"examples/boards-5x5.txt", "--size", "5x5", "--columns", "board,solution,min_moves,status,optimal_count,source,line,nullity,reached", "--job", "one-size"},
		{"examples/mixed", "--target", "either"},
		{"examples/mixed-sizes.txt", "--cells", "bits"},
		{"examples/faulty.txt"},
		{"--generate", "random,count=3000,seed=7", "--size", "9x9", "--search-limit", "100", "--job", "unproven"},
	} {
		flipmill(t, dir, append([]string{"run"}, args...)...)
	}
	for _, job := range []string{"one-size", "mixed", "mixed-sizes", "faulty", "unproven"} {
		page := readReport(t, dir, "out/job="+job)
		results, rejects := "'out/job="+job+"/results/*.parquet'", "'out/job="+job+"/rejects/*.parquet'"
		size := "rows || '×' || cols"
		if job == "one-size" { // has no such columns
			size = "'5×5'"
		}
		from := "(SELECT *, " + size + " AS size FROM " + results + ")"
		const order = " ORDER BY string_split(size, '×')[1]::INT, string_split(size, '×')[2]::INT"
		if job == "mixed-sizes" {
			page.checkDrawn(t, 12) // of 36 sizes, those with the most boards
		} else {
			page.compare(t, job+": hardest", page.captions, lines(t, dir, `SELECT puzzle_index FROM (
				SELECT *, row_number() OVER (PARTITION BY size ORDER BY puzzle_index) AS nth FROM (
				SELECT *, max(min_moves) OVER (PARTITION BY size) AS most FROM `+from+`) WHERE min_moves = most) WHERE nth <= 3`+order+`, nth`))
			page.compare(t, job+": histograms", page.rows("histogram", 0, 1, 3, 4), slices.Concat(
				lines(t, dir, "SELECT min_moves, count(*) AS n, count(*) FILTER (optimal_count = 1), sum(n) OVER (ORDER BY min_moves) / sum(n) OVER () FROM "+from+" WHERE status = 'solved' AND (SELECT count(DISTINCT size) > 1 FROM "+from+") GROUP BY min_moves ORDER BY ALL"),
				lines(t, dir, `SELECT min_moves, count(*) AS n, count(*) FILTER (optimal_count = 1), sum(n) OVER (PARTITION BY size ORDER BY min_moves) / sum(n) OVER (PARTITION BY size) FROM `+from+` WHERE status = 'solved'
					AND size IN (SELECT size FROM `+from+` GROUP BY size HAVING count(DISTINCT min_moves) > 1) GROUP BY size, min_moves`+order+", min_moves")))
		}
		page.compare(t, job+": sizes", page.rows("sizes", 0, 1, 4, 5, 6, 7, 8, 9), lines(t, dir, `SELECT size, count(*), count(*) FILTER (status = 'solved'), count(*) FILTER (status = 'impossible'),
			count(*) FILTER (status = 'unproven'), any_value(nullity), count(*) FILTER (optimal_count = 1), coalesce(sum(optimal_count)::VARCHAR, '–') FROM `+from+" GROUP BY size"+order))
		page.compare(t, job+": shares", page.rows("sizes", 2), lines(t, dir, "SELECT count(*) FILTER (solution IS NOT NULL) / count(*) FROM "+from+" GROUP BY size"+order))
		page.compare(t, job+": outcome", page.figures, slices.Concat(
			lines(t, dir, "SELECT unnest([count(*) FILTER (status = 'solved'), count(*) FILTER (status = 'impossible'), count(*) FILTER (status = 'unproven')]) FROM "+results),
			lines(t, dir, "SELECT count(*) FROM "+rejects), lines(t, dir, "SELECT count(*) FILTER (optimal_count = 1) FROM "+results)))
		page.compare(t, job+": reasons", page.rows("reasons", 0, 1), lines(t, dir, "SELECT reason, count(*) AS n FROM "+rejects+" GROUP BY reason ORDER BY n DESC, reason"))
		page.compare(t, job+": examples", page.rows("examples", 0, 1, 2, 3, 4), lines(t, dir, `SELECT reason, source || ':' || line, puzzle_index, array_to_string(regexp_extract_all(detail, '\S+'), ' '), array_to_string(regexp_extract_all(raw, '\S+'), ' ') FROM (
			SELECT *, count(*) OVER (PARTITION BY reason) AS n, row_number() OVER (PARTITION BY reason ORDER BY puzzle_index) AS nth FROM `+rejects+`) WHERE nth <= 3 ORDER BY n DESC, reason, nth`))
		middle := lines(t, dir, "SELECT printf('%.2f', avg(min_moves)), quantile_disc(min_moves, 0.5), quantile_disc(min_moves, 0.9), quantile_disc(min_moves, 0.99), max(min_moves) FROM "+results+" WHERE status = 'solved'")
		m := regexp.MustCompile(`On average (.*); half of the boards need (.*) or fewer, 90% (.*), 99% (.*); the most is (.*)\.`).FindStringSubmatch(page.text)
		if m == nil { // no solved board
			m = []string{"", "NULL", "NULL", "NULL", "NULL", "NULL"}
		}
		page.compare(t, job+": middle", []string{strings.Join(m[1:], "|")}, middle)
		page.checkFiles(t, filepath.Join(dir, "out/job="+job))
	}
}
