package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/draw"
)

// sheet is a page as a reader of its text finds it.
type sheet struct {
	tables   map[string][][]string // by id or class: rows of cells; of histograms all rows, one table after the other
	captions []string              // of drawn boards
	figures  []string              // of the outcome
	text     string                // all of it
	style    string
	scripts  []string
	elements []xml.StartElement
}

var script = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// readSheet parses a page, which is well-formed XML but for its scripts. Where a cell
// has a number for programs, that is what it says.
func readSheet(t *testing.T, page []byte) *sheet {
	t.Helper()
	s := &sheet{tables: map[string][][]string{}}
	for _, found := range script.FindAllSubmatch(page, -1) {
		s.scripts = append(s.scripts, string(found[1]))
	}
	page = script.ReplaceAll(page, nil)
	d := xml.NewDecoder(bytes.NewReader(page))
	var open []string // elements
	var table string
	var cell, number string
	var all strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			s.text = all.String()
			return s
		}
		if err != nil {
			t.Fatalf("%v in %.200s", err, page)
		}
		switch e := token.(type) {
		case xml.StartElement:
			s.elements = append(s.elements, e)
			open = append(open, e.Name.Local)
			switch e.Name.Local {
			case "table":
				if table = attribute(e, "class"); table == "" {
					table = attribute(e, "id")
				}
			case "tr":
				s.tables[table] = append(s.tables[table], nil)
			case "td", "th", "p", "dd":
				cell, number = "", ""
			case "br":
				cell += " "
			case "data":
				number = attribute(e, "value")
			}
		case xml.CharData:
			all.Write(e)
			cell += string(e)
			if len(open) > 0 && open[len(open)-1] == "style" {
				s.style += string(e)
			}
		case xml.EndElement:
			open = open[:len(open)-1]
			if number != "" {
				cell = number
			}
			switch text := strings.Join(strings.Fields(cell), " "); e.Name.Local {
			case "td", "th":
				rows := s.tables[table]
				rows[len(rows)-1] = append(rows[len(rows)-1], text)
			case "p":
				if slices.Contains(open, "li") {
					s.captions = append(s.captions, text)
				}
			case "dd":
				if number != "" && len(s.figures) < 5 {
					s.figures = append(s.figures, text)
				}
			}
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// rows returns a table without its heads, a line each, with the columns that are
// named by their numbers.
func (s *sheet) rows(table string, columns ...int) (lines []string) {
	for _, row := range s.tables[table] {
		if slices.Contains([]string{"Size", "min_moves", "Reason", "Name", "Part"}, row[0]) {
			continue
		}
		var cells []string
		for _, i := range columns {
			cells = append(cells, row[i])
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return lines
}

// readReport returns the page about a dataset.
func readReport(t *testing.T, dir, path string) *sheet {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	flipmill(t, dir, "report", path, "-o", name)
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return readSheet(t, page)
}

// lines puts a question to DuckDB; the answer is a line for each row.
func lines(t *testing.T, dir, sql string) (all []string) {
	t.Helper()
	text, err := query(dir, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records[1:] {
		all = append(all, strings.Join(r, "|"))
	}
	return all
}

// compare compares what the page says with what DuckDB says. A drawn board's
// caption says more than its index.
func (s *sheet) compare(t *testing.T, what string, got, want []string) {
	t.Helper()
	got = slices.Clone(got)
	for i, line := range got {
		if m := regexp.MustCompile(`^puzzle_index (\d+)`).FindStringSubmatch(line); m != nil {
			got[i] = m[1]
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: the page says\n%q\nDuckDB\n%q", what, got, want)
	}
}

func (s *sheet) checkDrawn(t *testing.T, sizes int) {
	t.Helper()
	n := 0
	for _, e := range s.elements {
		if strings.HasPrefix(attribute(e, "id"), "size-") {
			n++
		}
	}
	if n != sizes || !strings.Contains(s.text, "24 sizes with fewer boards") {
		t.Errorf("%d sizes are drawn, want %d and the number of the others", n, sizes)
	}
}

// checkFiles compares the manifest on the page with the files.
func (s *sheet) checkFiles(t *testing.T, path string) {
	t.Helper()
	named := 0
	for _, line := range s.rows("parts", 2, 4, 5) {
		fields := strings.Split(line, "|")
		data, err := os.ReadFile(filepath.Join(path, fields[0]))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); fields[1] != fmt.Sprint(len(data)) || fields[2] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %v", path, fields)
		}
		named++
	}
	if there, err := filepath.Glob(filepath.Join(path, "*/*.parquet")); err != nil || named != len(there) {
		t.Errorf("%s: the page has %d files of %d", path, named, len(there))
	}
}

// TestReportHostile: whatever stands in a corpus is text on the page. The page has
// no script but the two that draw charts, whatever its dataset is; it names nothing
// that a browser would load, and its policy admits these and its one style sheet.
func TestReportHostile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const evil = `<img src=x onerror=alert(1)>&amp;"'` + "\u202e"
	name := `"><script>alert(1)<` + `.csv` // no slash: it is a file
	text := "board,id\n011/100/110,\"</td><script>alert('" + strings.ReplaceAll(evil, `"`, `""`) + "')</script>\"\n01x/<b>/\x1b[31m,7\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	flipmill(t, dir, "run", name, "--job", "evil")
	page := readReport(t, dir, "out/job=evil")
	if again, err := command(t, dir, "report", "out/job=evil").Output(); err != nil || !reflect.DeepEqual(page, readSheet(t, again)) {
		t.Errorf("another page on standard output, or error %v", err)
	}
	if len(page.captions) != 1 || !strings.Contains(page.captions[0], `</td><script>alert('<img src=x onerror=alert(1)>&amp;"'`+"\uFFFD"+`')</script>`) || !strings.Contains(page.captions[0], name+":2") {
		t.Errorf("captions %q", page.captions)
	}
	if row := page.rows("examples", 1, 4); len(row) != 1 || !strings.Contains(row[0], name+":3|01x/<b>/\uFFFD[31m") {
		t.Errorf("examples %q", row)
	}
	checkInert(t, page)
}

// checkInert checks that a page does nothing.
func checkInert(t *testing.T, page *sheet) {
	t.Helper()
	sum := sha256.Sum256([]byte(page.style))
	var policy strings.Builder
	policy.WriteString("default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; script-src")
	for _, text := range page.scripts {
		sum := sha256.Sum256([]byte(text))
		policy.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
	}
	policy.WriteString("; base-uri 'none'; form-action 'none'")
	if echarts, ours := draw.Scripts(); !slices.Equal(page.scripts, []string{echarts, ours}) {
		t.Errorf("the page has %d scripts, which are not the library and ours", len(page.scripts))
	}
	said := false
	for _, e := range page.elements {
		if slices.Contains([]string{"script", "img", "link", "a", "iframe", "object", "form", "base"}, e.Name.Local) {
			t.Errorf("the page has an element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			if n := a.Name.Local; strings.HasPrefix(n, "on") || n == "src" || n == "href" || n == "style" {
				t.Errorf("%s has %s=%q", e.Name.Local, n, a.Value)
			}
		}
		said = said || attribute(e, "http-equiv") == "Content-Security-Policy" && attribute(e, "content") == policy.String()
	}
	if !said || page.style == "" {
		t.Errorf("the policy is not %s", policy.String())
	}
	if strings.Contains(page.style, "@import") || strings.Contains(page.style, "url(") {
		t.Error("the style sheet loads something")
	}
}

// TestReportLittle: a dataset without boards, rows or columns has a page, too, that
// says what is not there; what is no dataset has none.
func TestReportLittle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	linkExamples(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "empty.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"empty.txt", "--size", "5x5"}, "There is no board in this dataset."},
		{[]string{"examples/boards-5x5.txt", "--columns", "none", "--job", "none"}, "the dataset has no column board, min_moves, solution, rows, cols."},
		{[]string{"examples/boards-5x5.txt", "--columns", "board,min_moves", "--size", "5x5", "--job", "some"}, "the dataset has no column solution."},
	} {
		flipmill(t, dir, append([]string{"run"}, c.args...)...)
		job := c.args[len(c.args)-1]
		if job == "5x5" {
			job = "empty"
		}
		page := readReport(t, dir, "out/job="+job)
		if !strings.Contains(page.text, c.want) {
			t.Errorf("%s: not on the page: %s", job, c.want)
		}
		checkInert(t, page)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, dir, "report", "out", "-o", "page.html")
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != int(exitError) {
		t.Errorf("a page about no dataset: %v\n%s", err, out)
	}
	if after, err := os.ReadDir(dir); err != nil || !reflect.DeepEqual(names(before), names(after)) {
		t.Errorf("error %v, and left %v, before %v", err, names(after), names(before))
	}
}

func names(entries []os.DirEntry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
