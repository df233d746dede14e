package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flipmill/flipmill/pkg/config"
	"github.com/flipmill/flipmill/pkg/dataset"
	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/flipmill/flipmill/pkg/view"
)

// TestJSONPage: docs/json.md has the fields of every verb with --json, in their order,
// and says of each that may be left out that it may.
func TestJSONPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		heading, rest, _ := strings.Cut(section, "\n")
		sections[heading] = rest
	}
	delete(sections, "# What `--json` prints")
	for verb, printed := range map[string]any{
		"run": summary{}, "check": checked{}, "solve": answerRow{}, "show": dataset.Row{}, "stats": view.Statistics{},
		"verify": dataset.Report{}, "compact": compacted{}, "config print": []keySet{}, "bench": benchReport{},
		"submit": submitted{}, "doctor": []queue.Finding{}, "status": view.Status{}, "why": view.Explanation{},
	} {
		want := fieldsOf(reflect.TypeOf(printed), "")
		switch verb {
		case "check": // the page refers to show
			want = slices.DeleteFunc(want, func(field string) bool {
				return strings.HasPrefix(field, "first_records[].") || strings.HasPrefix(field, "reasons[].first[].")
			})
		case "why": // the page refers to status, and has the fields of a place once
			want = slices.DeleteFunc(want[len(fieldsOf(reflect.TypeFor[view.Status](), "")):], func(field string) bool {
				return strings.HasPrefix(field, "slowest.")
			})
		}
		var got []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*)\\|$").FindAllStringSubmatch(sections[verb], -1) {
			if regexp.MustCompile(`\bif\b`).MatchString(row[2]) {
				row[1] += mayMiss
			}
			got = append(got, row[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page has\n%q\nthe verb prints\n%q", verb, got, want)
		}
		delete(sections, verb)
	}
	for heading := range sections {
		t.Errorf("no verb %q", heading)
	}
	for _, k := range config.Keys() {
		if k.Name != "json" {
			continue
		}
		for _, verb := range k.Verbs {
			if !strings.Contains(string(text), "\n## "+verb+"\n") && !strings.Contains(string(text), "`"+verb+"`") {
				t.Errorf("the page does not tell of %s", verb)
			}
		}
	}
}

// mayMiss is behind the name of a field that is left out where it has no value.
const mayMiss = " if any"

// fieldsOf returns the fields that encoding/json writes of a type, but for objects that
// are always there.
func fieldsOf(of reflect.Type, path string) (fields []string) {
	switch of.Kind() {
	case reflect.Pointer:
		return fieldsOf(of.Elem(), path)
	case reflect.Slice:
		return fieldsOf(of.Elem(), path+"[]")
	}
	if of.Kind() != reflect.Struct || of.PkgPath() == "time" {
		return nil
	}
	for field := range of.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-":
		case field.Anonymous && name == "":
			fields = append(fields, fieldsOf(field.Type, path)...)
		default:
			at := strings.TrimPrefix(path+"."+name, ".")
			below := fieldsOf(field.Type, at)
			if options == "omitempty" {
				at += mayMiss
			}
			if len(below) == 0 || field.Type.Kind() != reflect.Struct {
				fields = append(fields, at)
			}
			fields = append(fields, below...)
		}
	}
	return fields
}
