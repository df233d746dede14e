package main

import (
	"context"
	"database/sql"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary serve as the flipmill command, and as a NATS server,
// too: scripts and tests that need a process of their own run it under that name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"flipmill": main, "nats-server": natsServer, "duckdb-convert": convert, "duckdb": duckdbMain})
}

var update = flag.Bool("update", false, "accept what the scripts compare as it is now")

// TestScripts runs the command line as people type it, in a folder with the
// examples, which are also in a bucket of that name. Besides testscript's own, a
// script has the commands
//
//	upload FOLDER KEY    puts the files of a folder into the bucket
//	download KEY FOLDER  gets what is below a key, as aws s3 sync would
//	sql FILE             runs the query in FILE and prints the rows as CSV
//	flip-bit FILE N      inverts the lowest bit of byte N, counted from the end if negative
//	exits CODE CMD...    runs a command that must end with CODE
//
// Those that take seconds are in a folder of their own: see TestScriptsOfDatasets.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

func runScripts(t *testing.T, dir string) {
	t.Helper()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	bucket := newBucket(t, "examples")
	if err := bucket.putFolder(examples, ""); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, bucket.environment()...)
			return os.Symlink(examples, filepath.Join(env.WorkDir, "examples"))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"sql": scriptSQL,
			"upload": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(bucket.putFolder(ts.MkAbs(args[0]), args[1]+"/"))
			},
			"download": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(bucket.getFolder(args[0]+"/", ts.MkAbs(args[1])))
			},
			"flip-bit": scriptFlipBit,
			"exits":    scriptExits,
		},
	})
}

func scriptSQL(ts *testscript.TestScript, _ bool, args []string) {
	text, err := query(ts.MkAbs("."), ts.ReadFile(args[0]))
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), text)
}

func scriptFlipBit(ts *testscript.TestScript, _ bool, args []string) {
	var at int
	_, err := fmt.Sscan(args[1], &at)
	ts.Check(err)
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 1
	ts.Check(os.WriteFile(path, data, 0o644))
}

func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	var want int
	_, err := fmt.Sscan(args[0], &want)
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[interface {
			error
			ExitCode() int
		}](err)
		if !ok {
			ts.Fatalf("run %v: %v", args[1:], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v exits with %d, want %d", args[1:], got, want)
	}
}

// openDuckDB opens the one DuckDB of the process: a connection of its own costs each
// query little, an instance much.
var openDuckDB = sync.OnceValues(func() (*sql.DB, error) {
	return sql.Open("duckdb", "?enable_external_file_cache=false") // tests alter the files that they query
})

// query runs SQL with relative paths resolved in dir, and returns the rows as
// CSV with a header, as duckdb -csv prints them.
func query(dir, text string) (string, error) {
	db, err := openDuckDB()
	if err != nil {
		return "", err
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(context.Background(), "SET SESSION file_search_path = '"+dir+"'"); err != nil {
		return "", err
	}
	rows, err := conn.QueryContext(context.Background(), text)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var b strings.Builder
	if err := writeRows(&b, rows); err != nil {
		return "", err
	}
	return b.String(), nil
}

func writeRows(w io.Writer, rows *sql.Rows) error {
	out := csv.NewWriter(w)
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if err := out.Write(columns); err != nil {
		return err
	}
	values := make([]any, len(columns))
	pointers := make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		fields := make([]string, len(values))
		for i, v := range values {
			fields[i] = "NULL"
			if v != nil {
				fields[i] = fmt.Sprint(v)
			}
		}
		if err := out.Write(fields); err != nil {
			return err
		}
	}
	out.Flush()
	return errors.Join(rows.Err(), out.Error())
}

// duckdbMain is what main of the duckdb command does in pages: duckdb [-csv] [-c SQL],
// with the SQL of standard input where there is no -c. It prints CSV always.
func duckdbMain() {
	args := slices.DeleteFunc(os.Args[1:], func(arg string) bool { return arg == "-csv" })
	sql, err := io.ReadAll(os.Stdin)
	if len(args) == 2 && args[0] == "-c" {
		sql, err = []byte(args[1]), nil
	}
	if err == nil {
		var text string
		if text, err = query(".", string(sql)); err == nil {
			fmt.Print(text)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "duckdb:", err)
	os.Exit(1)
}
