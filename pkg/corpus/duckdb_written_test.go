//go:build cluster

package corpus_test

import (
	"bytes"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2" // the writer that is not ours
)

var update = flag.Bool("update", false, "write the files of testdata/duckdb anew")

// duckdbFile lets DuckDB write the rows of a query, and returns the file. It must be the
// one in testdata, which the tests have without the tag cluster.
func duckdbFile(t testing.TB, name, query, options string) string {
	t.Helper()
	db, err := sql.Open("duckdb", "?threads=1") // more might share out the rows in another way
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	committed, path := filepath.Join("testdata/duckdb", name+".parquet"), filepath.Join(t.TempDir(), name+".parquet")
	if *update {
		path = committed
	}
	if _, err := db.Exec("COPY (" + query + ") TO '" + path + "' (FORMAT parquet" + options + ")"); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what DuckDB writes (%v): run go test -tags=cluster ./pkg/corpus -run=Parquet -update", committed, err)
	}
	return path
}
