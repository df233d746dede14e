package dataset_test

import (
	"database/sql"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
)

func TestTmpDuck(t *testing.T) {
	output := t.TempDir()
	path := smallCorpus(t, testSpec(t, "plus", 2)).write(t, output)
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range []string{
		"select * from '" + path + "/results/*.parquet' limit 5",
		"select count(*), count(id), count(distinct puzzle_index), sum(length(board)), sum(length(solution)), count(min_moves) from '" + path + "/results/*.parquet'",
		"select * from '" + path + "/rejects/*.parquet'",
		"select * from '" + path + "/stats/stats.parquet' limit 5",
		"select column_name, column_type from (describe from '" + path + "/results/*.parquet')",
		"select stats_min, stats_max, path_in_schema, encodings from parquet_metadata('" + path + "/results/part-00000.parquet')",
	} {
		rows, err := db.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		cols, _ := rows.Columns()
		for rows.Next() {
			v := make([]any, len(cols))
			p := make([]any, len(cols))
			for i := range v {
				p[i] = &v[i]
			}
			if err := rows.Scan(p...); err != nil {
				t.Fatal(err)
			}
			t.Log(v...)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	}
}
