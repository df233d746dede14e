package deployments_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pods are the pods of rendered workloads, run as processes.
type pods struct {
	t       *testing.T
	dir     string
	cluster *cluster
	hosts   *hosts
	secrets map[string]map[string]string // what the cluster's owner makes
	volumes map[string]string            // claims, beyond those of the workloads
	running []*process
}

// workload returns the workload whose name starts so.
func (p *pods) workload(name string) *workload {
	p.t.Helper()
	i := slices.IndexFunc(p.cluster.workloads, func(w workload) bool { return strings.HasPrefix(w.name, name) })
	if i < 0 {
		p.t.Fatalf("there is no workload %s", name)
	}
	return &p.cluster.workloads[i]
}

// names returns the names of a workload's pods, those of a StatefulSet as its
// service has them.
func (w *workload) names(replicas int) (names []string) {
	for i := range replicas {
		name := fmt.Sprintf("%s-%d", w.name, i)
		if w.service != "" {
			name += "." + w.service
		}
		names = append(names, name)
	}
	return names
}

// start starts one pod of a workload.
func (p *pods) start(w *workload, name string) *process {
	p.t.Helper()
	spec := &w.template.Spec
	container := &spec.Containers[0]
	files := p.mount(spec, container, name)
	env := map[string]string{}
	for _, from := range container.EnvFrom {
		maps.Copy(env, p.secrets[from.SecretRef.Name])
	}
	pod, _, _ := strings.Cut(name, ".")
	for _, e := range container.Env {
		switch from := e.ValueFrom; {
		case from == nil:
			env[e.Name] = p.hosts.local(e.Value, name, files)
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
			env[e.Name] = pod
		case from.ResourceFieldRef != nil:
			env[e.Name] = fmt.Sprint(resource(container, from.ResourceFieldRef.Resource))
		default:
			p.t.Fatalf("%s: %s comes from where we do not know", name, e.Name)
		}
	}
	var args, pairs []string
	for _, arg := range container.Args {
		for key, value := range env {
			arg = strings.ReplaceAll(arg, "$("+key+")", value)
		}
		args = append(args, p.hosts.local(arg, name, files))
	}
	for key, value := range env {
		pairs = append(pairs, key+"="+value)
	}
	program := map[string]string{"nats": "nats-server", "flipmill": "flipmill"}[container.Name]
	dir := p.dir
	if container.WorkingDir != "" {
		dir = files[container.WorkingDir]
	}
	started := start(p.t, dir, pairs, program, args...)
	p.running = append(p.running, started)
	return started
}

func resource(c *corev1.Container, name string) int64 {
	switch name {
	case "requests.memory":
		return c.Resources.Requests.Memory().Value()
	case "limits.cpu":
		return c.Resources.Limits.Cpu().Value() // rounded up
	}
	return -1
}

// mount writes the files of a pod, and returns where they are.
func (p *pods) mount(spec *corev1.PodSpec, container *corev1.Container, name string) map[string]string {
	p.t.Helper()
	files := map[string]string{}
	for _, m := range container.VolumeMounts {
		v := spec.Volumes[slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
		here := filepath.Join(p.dir, name, m.Name)
		var contents map[string]string
		mode := os.FileMode(0o644)
		switch {
		case v.ConfigMap != nil:
			contents = p.cluster.configs[v.ConfigMap.Name].Data
		case v.Secret != nil:
			contents, mode = p.secrets[v.Secret.SecretName], os.FileMode(*v.Secret.DefaultMode)
			if contents == nil {
				p.t.Fatalf("%s: nobody makes the secret %s", name, v.Secret.SecretName)
			}
		case p.volumes[v.PersistentVolumeClaim.ClaimName] != "":
			here = p.volumes[v.PersistentVolumeClaim.ClaimName]
		}
		if err := os.MkdirAll(here, 0o755); err != nil {
			p.t.Fatal(err)
		}
		for file, text := range contents {
			if err := os.WriteFile(filepath.Join(here, file), []byte(p.hosts.local(text, name, nil)), mode); err != nil {
				p.t.Fatal(err)
			}
		}
		files[m.MountPath] = here
	}
	return files
}

// ready waits until the readiness probe of a pod succeeds, as long as the
// process lives.
func (p *pods) ready(w *workload, name string, process *process) {
	p.t.Helper()
	probe := w.template.Spec.Containers[0].ReadinessProbe.HTTPGet
	port, _ := portOf(&w.template, probe.Port.String())
	until(p.t, func() error {
		select {
		case <-process.done:
			p.t.Fatalf("%s has ended:\n%s", name, process.log())
		default:
		}
		_, err := ask(fmt.Sprintf("http://%s:%d%s", p.hosts.address(name), port, probe.Path))
		return err
	})
}

// ask returns the answer at a URL, which must be a good one.
func ask(url string) (*http.Response, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return answer, nil
}

// roll starts all pods of a workload at once, and waits until they are ready.
func (p *pods) roll(name string, replicas int) {
	p.t.Helper()
	w := p.workload(name)
	names := w.names(replicas)
	var started []*process
	for _, n := range names {
		started = append(started, p.start(w, n))
	}
	for i, n := range names {
		p.ready(w, n, started[i])
	}
}

// newPods gives each pod that others speak to its address.
func newPods(t *testing.T, overlay string) *pods {
	t.Helper()
	p := &pods{t: t, dir: t.TempDir(), cluster: render(t, overlay, overlay+"/submit"), hosts: newHosts()}
	p.volumes = map[string]string{"corpus": filepath.Join(p.dir, "corpus")}
	if err := os.MkdirAll(p.volumes["corpus"], 0o755); err != nil {
		t.Fatal(err)
	}
	boards := read(t, "../examples/boards-5x5.txt")
	if err := os.WriteFile(filepath.Join(p.volumes["corpus"], "boards.txt"), []byte(boards), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// runJob does what applying an overlay and its submit does, compares the dataset
// with that of flipmill run, and stops everything.
func (p *pods) runJob(servers, workers int) {
	p.t.Helper()
	p.roll("nats", servers)
	p.start(p.workload("setup"), "setup").want(0)
	p.roll("aggregator", 1)
	p.roll("worker", workers)
	p.start(p.workload("submit"), "submit").want(0)

	calm := p.t.TempDir()
	start(p.t, calm, nil, "flipmill", "run", filepath.Join(p.volumes["corpus"], "boards.txt"), "--size", "5x5", "-o", calm).want(0)
	got, want := hashes(p.t, filepath.Join(p.dir, "aggregator-0.aggregator", "data", "job=boards")), hashes(p.t, filepath.Join(calm, "job=boards"))
	if !maps.Equal(got, want) || len(got) == 0 {
		p.t.Errorf("the dataset is\n%v\nwant that of flipmill run:\n%v", got, want)
	}
}

// stop ends all pods as Kubernetes does.
func (p *pods) stop() {
	p.t.Helper()
	for _, r := range slices.Backward(p.running) {
		r.signal(syscall.SIGTERM)
		if code := r.exit(); code != 0 && !strings.HasSuffix(r.cmd.Path, "nats-server") {
			p.t.Errorf("%v, told to stop, ends with %d", r.cmd, code)
		}
	}
}

func TestKubernetesDevRunsAJob(t *testing.T) {
	t.Parallel()
	p := newPods(t, "dev")
	p.hosts.alias("nats", "nats-0.nats")
	p.runJob(int(*p.workload("nats").replicas), int(*p.workload("worker").replicas))
	p.stop()
}

// TestKubernetesProdRunsAJob: three servers with TLS, streams with three
// replicas, and an identity for each role, made as docs/operations.md says. What
// KEDA asks for is there.
func TestKubernetesProdRunsAJob(t *testing.T) {
	t.Parallel()
	p := newPods(t, "prod")
	names := p.workload("nats").names(int(*p.workload("nats").replicas))
	var addresses []string
	for _, name := range names {
		addresses = append(addresses, p.hosts.address(name))
	}
	p.secrets = identities(t, addresses)
	p.runJob(len(names), 2)
	p.checkKEDA(addresses)
	p.stop()
}

// identities makes the secrets of the prod overlay.
func identities(t *testing.T, addresses []string) map[string]map[string]string {
	t.Helper()
	dir := makeIdentities(t, addresses...)
	made := map[string]map[string]string{"nats-identities": {}}
	for _, who := range []struct{ secret, name string }{{"nats-tls", "server"}, {"client-tls", "client"}} {
		made[who.secret] = map[string]string{
			"ca.crt": read(t, dir+"/ca.crt"), "tls.crt": read(t, dir+"/"+who.name+".crt"), "tls.key": read(t, dir+"/"+who.name+".key"),
		}
	}
	for _, role := range []string{"producer", "worker", "aggregator", "operator"} {
		made["identity-"+role] = map[string]string{"seed": read(t, dir+"/"+role+".seed")}
	}
	for line := range strings.Lines(read(t, dir+"/nats.env")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		made["nats-identities"][name] = value
	}
	return made
}

// makeIdentities returns a folder with all that servers at some addresses and
// their clients need.
func makeIdentities(t *testing.T, addresses ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	if out, err := exec.Command("nats/identities", append([]string{dir}, addresses...)...).CombinedOutput(); err != nil {
		t.Fatalf("identities: %v\n%s", err, out)
	}
	return dir
}

// checkKEDA asks the servers what KEDA asks them: the consumer of each trigger is
// there, on three servers, and has nothing left to do.
func (p *pods) checkKEDA(addresses []string) {
	p.t.Helper()
	for _, trigger := range p.cluster.keda[0].Spec.Triggers {
		m := trigger.Metadata
		if m["natsServerMonitoringEndpoint"] != "nats.flipmill.svc.cluster.local:8222" {
			p.t.Errorf("KEDA asks %s", m["natsServerMonitoringEndpoint"])
		}
		until(p.t, func() error {
			answer, err := ask(fmt.Sprintf("http://%s:8222/jsz?acc=%s&consumers=true&config=true", addresses[0], m["account"]))
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			var seen struct {
				Accounts []struct {
					Streams []struct {
						Name   string
						Config struct {
							Replicas int `json:"num_replicas"`
						}
						Consumers []struct {
							Name       string
							Pending    int `json:"num_pending"`
							AckPending int `json:"num_ack_pending"`
						} `json:"consumer_detail"`
					} `json:"stream_detail"`
				} `json:"account_details"`
			}
			if err := json.NewDecoder(answer.Body).Decode(&seen); err != nil {
				return err
			}
			for _, account := range seen.Accounts {
				for _, s := range account.Streams {
					for _, c := range s.Consumers {
						if s.Name == m["stream"] && s.Config.Replicas == 3 && c.Name == m["consumer"] && c.Pending+c.AckPending == 0 {
							return nil
						}
					}
				}
			}
			return fmt.Errorf("no idle consumer %s of stream %s with 3 replicas: %+v", m["consumer"], m["stream"], seen)
		})
	}
}
