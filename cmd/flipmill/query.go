package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/object"
)

func newQuery() *cobra.Command {
	return newDatasetVerb(&cobra.Command{
		Use:   "query DATASET",
		Short: "Print the lines that open a dataset in DuckDB, Polars, Spark and others",
		Long: `Prints lines to paste that make results, rejects and stats of a dataset tables of
another program, and count the boards by status and min_moves. For duckdb, bigquery
and athena they are SQL, for polars, pandas and spark Python.

bigquery and athena read from a bucket: the lines begin with the command that copies
the dataset there; put its name for BUCKET.`,
		Example: `  flipmill query out/job=boards-5x5 | duckdb
  flipmill query out/job=boards-5x5 --for polars`,
	}, func(cmd *cobra.Command, c *config.Config, path string) error {
		if strings.ContainsFunc(path, unicode.IsControl) {
			return withCode(exitUsage, fmt.Errorf("query: the name %q cannot be pasted", path))
		}
		m, err := dataset.ReadManifest(path)
		if err != nil {
			return err
		}
		if object.Is(path) {
			path = strings.TrimRight(path, "/")
		} else {
			path = filepath.ToSlash(filepath.Clean(path))
		}
		if _, err := io.WriteString(cmd.OutOrStdout(), queryLines(c.For, path, m)); err != nil {
			return fmt.Errorf("write the lines: %w", err)
		}
		return nil
	})
}

// queryLines returns the lines for a reader of the dataset at path.
func queryLines(reader, path string, m *dataset.Manifest) string {
	// What counts needs columns that --columns may have left out.
	counted := slices.Contains(m.Spec.Columns, "status") && slices.Contains(m.Spec.Columns, "min_moves")
	some := "results"
	if len(m.Spec.Columns) == 0 { // its results have no rows
		some = "stats"
	}
	var b strings.Builder
	switch reader {
	case "polars":
		b.WriteString("import polars as pl\n")
		eachTable(&b, func(table string) string {
			return fmt.Sprintf("%s = pl.scan_parquet(%s, hive_partitioning=False)", table, python(path+"/"+table+"/*.parquet"))
		})
		b.WriteString(pick(counted, `print(results.group_by("status", "min_moves").agg(pl.len().alias("boards")).sort("status", "min_moves").collect())`,
			"print("+some+".head(10).collect())"))
	case "pandas":
		b.WriteString("import pandas as pd\n")
		eachTable(&b, func(table string) string {
			return fmt.Sprintf("%s = pd.read_parquet(%s)", table, python(path+"/"+table))
		})
		b.WriteString(pick(counted, `print(results.groupby(["status", "min_moves"], dropna=False).size())`, "print("+some+".head(10))"))
	case "spark":
		b.WriteString("from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n")
		eachTable(&b, func(table string) string {
			return fmt.Sprintf("%s = spark.read.parquet(%s)", table, python(path+"/"+table))
		})
		b.WriteString(pick(counted, `results.groupBy("status", "min_moves").count().orderBy("status", "min_moves").show(1000)`, some+".show(10)"))
	case "bigquery":
		fmt.Fprintf(&b, "-- gcloud storage cp --recursive %s gs://BUCKET/job=%s\nCREATE SCHEMA IF NOT EXISTS flipmill;\n", shell(path), m.Job)
		eachTable(&b, func(table string) string {
			return fmt.Sprintf("CREATE OR REPLACE EXTERNAL TABLE flipmill.%s OPTIONS (format = 'PARQUET', uris = ['gs://BUCKET/job=%s/%s/*.parquet']%s);",
				table, m.Job, table, pick(table == "results" && hasLists(m), ", enable_list_inference = true", ""))
		})
		b.WriteString(pick(counted, countSQL("flipmill.results"), "SELECT * FROM flipmill."+some+" LIMIT 10;"))
	case "athena":
		fmt.Fprintf(&b, "-- aws s3 cp --recursive %s s3://BUCKET/job=%s\nCREATE DATABASE IF NOT EXISTS flipmill;\n", shell(path), m.Job)
		eachTable(&b, func(table string) string { return athenaTable(table, m) })
		b.WriteString(pick(counted, countSQL("flipmill.results"), "SELECT * FROM flipmill."+some+" LIMIT 10;"))
	default: // duckdb
		eachTable(&b, func(table string) string {
			files := strings.ReplaceAll(path+"/"+table+"/*.parquet", "'", "''")
			return fmt.Sprintf("CREATE OR REPLACE VIEW %s AS FROM read_parquet('%s', hive_partitioning = false);", table, files)
		})
		b.WriteString(pick(counted, countSQL("results"), "SELECT * FROM "+some+" LIMIT 10;"))
	}
	b.WriteByte('\n')
	return b.String()
}

// hasLists reports whether results have columns of lists.
func hasLists(m *dataset.Manifest) bool {
	return slices.Contains(m.Spec.Columns, "moves") || slices.Contains(m.Spec.Columns, "board_grid")
}

func eachTable(b *strings.Builder, line func(table string) string) {
	for _, table := range [...]string{"results", "rejects", "stats"} {
		b.WriteString(line(table) + "\n")
	}
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

func countSQL(table string) string {
	return "SELECT status, min_moves, count(*) AS boards FROM " + table + " GROUP BY status, min_moves ORDER BY status, min_moves;"
}

// athenaTable declares a table with its columns, which Athena does not read from
// the files.
func athenaTable(table string, m *dataset.Manifest) string {
	names, kept := m.Spec.Columns, m.Spec.Keep
	switch table {
	case "rejects":
		names, kept = []string{"puzzle_index", "source", "line", "reason", "detail", "raw"}, nil
	case "stats":
		names, kept = statsHeader(), nil
	default:
		if len(names) == 0 { // the files of results have no rows, but a column all the same
			names = []string{"puzzle_index"}
		}
	}
	var columns []string
	for _, name := range names {
		columns = append(columns, fmt.Sprintf("`%s` %s", name, athenaType(name, m.Spec.Cells)))
	}
	for _, name := range kept {
		columns = append(columns, fmt.Sprintf("`%s` string", strings.ReplaceAll(name, "`", "``")))
	}
	return fmt.Sprintf("CREATE EXTERNAL TABLE flipmill.%s (%s) STORED AS PARQUET LOCATION 's3://BUCKET/job=%s/%s/';", table, strings.Join(columns, ", "), m.Job, table)
}

// athenaType is the type of one of our columns.
func athenaType(column, cells string) string {
	switch column {
	case "puzzle_index", "line", "optimal_count", "boards", "unique_optimal_boards", "optimal_solutions":
		return "bigint"
	case "rows", "cols", "min_moves", "nullity", "lit", "orbit_size", "max_moves":
		return "int"
	case "unique_optimal":
		return "boolean"
	case "difficulty":
		return "double"
	case "moves":
		return "array<struct<row:int,col:int>>"
	case "board_grid":
		return "array<array<int>>"
	case "board", "solution", "canonical", "witness":
		if cells == dataset.CellsBits {
			return "binary"
		}
	}
	return "string"
}

// python quotes a text for Python, whose strings may be those of JSON.
func python(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("BUG: query: " + err.Error())
	}
	return string(quoted)
}

// shell quotes a text for a shell.
func shell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
