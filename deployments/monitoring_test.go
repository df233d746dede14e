package deployments_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// rules returns the alerts' rules, which Prometheus's own reader must take.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, "monitoring/alerts.yaml")), false, model.UTF8Validation, promqlParser(), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) != 1 {
		t.Fatal("want one group of rules")
	}
	return groups.Groups[0].Rules
}

func promqlParser() parser.Parser { return parser.NewParser(parser.Options{}) }

// dashboard is what we look at of Grafana's.
type dashboard struct {
	UID        string
	Templating struct {
		List []struct{ Name, Type string }
	}
	Panels []struct {
		ID         int
		Type       string
		Title      string
		Datasource struct{ UID string }
		Targets    []struct{ Expr string }

		FieldConfig struct {
			Defaults struct {
				Unit       string
				Thresholds struct{ Steps []struct{ Color string } }
			}
		}
	}
}

func shownBoard(t *testing.T) *dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "monitoring/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// queries returns every query of alerts and dashboard, parsed, by where it stands.
func queries(t *testing.T) map[string]parser.Expr {
	t.Helper()
	texts := map[string]string{}
	for _, r := range rules(t) {
		texts["alert "+r.Alert] = r.Expr
	}
	for _, p := range shownBoard(t).Panels {
		for _, target := range p.Targets {
			texts["panel "+p.Title+": "+target.Expr] = strings.NewReplacer("$__rate_interval", "4m", "$__range", "1h", "$job", ".*").Replace(target.Expr)
		}
	}
	parsed := map[string]parser.Expr{}
	for where, text := range texts {
		expr, err := promqlParser().ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		parsed[where] = expr
	}
	return parsed
}

// selected returns the metrics that a query names, each with the labels by which
// it chooses.
func selectedMetrics(expr parser.Expr) map[string][]string {
	metrics := map[string][]string{}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				if m.Name != "__name__" {
					metrics[s.Name] = append(metrics[s.Name], m.Name)
				}
			}
			metrics[s.Name] = append(metrics[s.Name], "job")
		}
		return nil
	})
	return metrics
}

// documented returns the metrics of docs/metrics.md with their labels; another
// test compares that page with what the processes have.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `(flipmill_\\w+)` \\| (\\w+) \\|([^|]*)\\|")
	for _, m := range row.FindAllStringSubmatch(read(t, "../docs/metrics.md"), -1) {
		labels := append(regexp.MustCompile(`\w+`).FindAllString(m[3], -1), "job", "instance")
		if m[2] != "histogram" {
			metrics[m[1]] = labels
			continue
		}
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			metrics[m[1]+suffix] = append(labels, "le")
		}
	}
	for _, usual := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes"} {
		metrics[usual] = []string{"job", "instance"}
	}
	return metrics
}

// TestQueriesNameMetrics: every query parses, and names metrics and labels that
// are there.
func TestQueriesNameMetrics(t *testing.T) {
	t.Parallel()
	known := documented(t)
	for where, expr := range queries(t) {
		named := selectedMetrics(expr)
		if len(named) == 0 {
			t.Errorf("%s: it names no metric", where)
		}
		var labels []string
		for metric, chosen := range named {
			if known[metric] == nil {
				t.Errorf("%s: there is no metric %s", where, metric)
			}
			labels = append(labels, known[metric]...)
			for _, label := range chosen {
				if !slices.Contains(known[metric], label) {
					t.Errorf("%s: %s has no label %s", where, metric, label)
				}
			}
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if a, ok := n.(*parser.AggregateExpr); ok {
				for _, label := range a.Grouping {
					if !slices.Contains(labels, label) {
						t.Errorf("%s: no metric has a label %s", where, label)
					}
				}
			}
			return nil
		})
	}
}

// TestAlertsHaveARunbook: each alert has a section of the runbook, and each
// section is of an alert.
func TestAlertsHaveARunbook(t *testing.T) {
	t.Parallel()
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(read(t, "../docs/runbook.md"), -1) {
		sections[m[1]] = true
	}
	for _, r := range rules(t) {
		if !sections[r.Alert] || r.Annotations["runbook"] != "docs/runbook.md#"+strings.ToLower(r.Alert) {
			t.Errorf("%s: no section of the runbook, or another one: %s", r.Alert, r.Annotations["runbook"])
		}
		if r.Annotations["summary"] == "" || !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) {
			t.Errorf("%s: no summary, or severity %q", r.Alert, r.Labels["severity"])
		}
		delete(sections, r.Alert)
	}
	for _, left := range slices.Sorted(maps.Keys(sections)) {
		t.Errorf("the runbook has a section %s, which is no alert", left)
	}
}

// TestDashboard: it is found under one address wherever it is, and works with
// any data source. Each panel has a unit and is about the scrape jobs that are chosen;
// colours of single numbers are ours: Grafana's own are red from 80 on.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := shownBoard(t)
	if d.UID != "flipmill" || d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Type != "datasource" {
		t.Errorf("the dashboard has the uid %s and the variables %v", d.UID, d.Templating.List)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.Datasource.UID != "${datasource}" || len(p.Targets) == 0) {
			t.Errorf("panel %s: data source %q, %d queries", p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			if all, chosen := strings.Count(target.Expr, "flipmill_")+strings.Count(target.Expr, "process_"), strings.Count(target.Expr, `job=~"$job"`); all != chosen {
				t.Errorf("panel %s: %d metrics, %d of the jobs that are chosen: %s", p.Title, all, chosen, target.Expr)
			}
		}
		if look := p.FieldConfig.Defaults; p.Type != "row" && look.Unit == "" || p.Type == "stat" && len(look.Thresholds.Steps) == 0 {
			t.Errorf("panel %s: unit %q, %d colours", p.Title, look.Unit, len(look.Thresholds.Steps))
		}
	}
}

// TestMonitoringOfCompose: Prometheus finds the services of the Compose file,
// and Grafana finds Prometheus and the dashboard.
func TestMonitoringOfCompose(t *testing.T) {
	t.Parallel()
	project := composeProject(t, "monitoring")
	var scrape struct {
		RuleFiles     []string `json:"rule_files"`
		ScrapeConfigs []struct {
			DNS []struct {
				Names []string
				Type  string
				Port  int
			} `json:"dns_sd_configs"`
		} `json:"scrape_configs"`
	}
	unmarshal(t, "monitoring/prometheus.yaml", &scrape)
	found := scrape.ScrapeConfigs[0].DNS[0]
	for _, name := range found.Names {
		if _, ok := project.Services[name]; !ok {
			t.Errorf("there is no service %s to scrape", name)
		}
	}
	if http := regexp.MustCompile(`(?m)^http: 0\.0\.0\.0:(\d+)$`).FindStringSubmatch(read(t, "../configs/service.yaml")); http[1] != "9464" || found.Port != 9464 {
		t.Errorf("services answer at %s, Prometheus asks at %d", http[1], found.Port)
	}
	var sources struct {
		Datasources []struct{ Type, URL string }
	}
	unmarshal(t, "monitoring/grafana-sources.yaml", &sources)
	if s := sources.Datasources[0]; s.Type != "prometheus" || s.URL != "http://prometheus:9090" {
		t.Errorf("Grafana asks %v", s)
	}
	var providers struct {
		Providers []struct{ Options struct{ Path string } }
	}
	unmarshal(t, "monitoring/grafana-dashboards.yaml", &providers)
	mounted := map[string]string{}
	for _, service := range []string{"prometheus", "grafana"} {
		for _, v := range project.Services[service].Volumes {
			mounted[v.Target] = v.Source
		}
	}
	for target, source := range map[string]string{
		"/etc/prometheus/" + scrape.RuleFiles[0]:                                        "alerts.yaml",
		providers.Providers[0].Options.Path + "/dashboard.json":                         "dashboard.json",
		"/etc/grafana/provisioning/datasources/flipmill.yaml":                           "grafana-sources.yaml",
		"/etc/grafana/provisioning/dashboards/flipmill.yaml":                            "grafana-dashboards.yaml",
		strings.TrimPrefix(project.Services["prometheus"].Command[0], "--config.file="): "prometheus.yaml",
	} {
		if !strings.HasSuffix(mounted[target], "/monitoring/"+source) {
			t.Errorf("%s is %q, want %s", target, mounted[target], source)
		}
	}
}

func unmarshal(t *testing.T, name string, to any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, name)), to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
