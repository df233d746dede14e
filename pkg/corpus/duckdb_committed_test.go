//go:build !cluster

package corpus_test

import "testing"

// duckdbFile returns the file that DuckDB wrote for a query, which is in testdata, since
// DuckDB takes long to link. With the tag cluster DuckDB writes it, and compares.
func duckdbFile(_ testing.TB, name, _, _ string) string {
	return "testdata/duckdb/" + name + ".parquet"
}
