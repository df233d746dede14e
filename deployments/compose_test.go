package deployments_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "compose/compose.yaml"

func composeProject(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeFile}, cli.WithProfiles(profiles), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// containers are the services of a Compose file, run as processes.
type containers struct {
	t       *testing.T
	dir     string
	project *types.Project
	hosts   *hosts
	running []*process
}

// files returns where the mounts of a container are on this host. A file is
// copied, with the addresses in it.
func (c *containers) files(s types.ServiceConfig, own string) map[string]string {
	c.t.Helper()
	files := map[string]string{"/flipmill": "flipmill"}
	for _, v := range s.Volumes {
		here := v.Source
		switch info, err := os.Stat(v.Source); {
		case v.Type == types.VolumeTypeVolume:
			here = filepath.Join(c.dir, "volumes", v.Source)
			if _, named := c.project.Volumes[v.Source]; !named {
				c.t.Errorf("service %s: volume %s is not declared", s.Name, v.Source)
			}
			if err := os.MkdirAll(here, 0o755); err != nil {
				c.t.Fatal(err)
			}
		case err != nil:
			c.t.Fatal(err)
		case !info.IsDir():
			here = filepath.Join(c.dir, own+"-"+filepath.Base(v.Source))
			if err := os.WriteFile(here, []byte(c.hosts.local(read(c.t, v.Source), own, nil)), 0o644); err != nil {
				c.t.Fatal(err)
			}
		}
		files[v.Target] = here
	}
	return files
}

// start starts a command in a container of a service.
func (c *containers) start(s types.ServiceConfig, own string, command []string) *process {
	c.t.Helper()
	files := c.files(s, own)
	program, ok := map[string]string{"nats": "nats-server"}[s.Name]
	if !ok {
		program = "flipmill" // the entry point of our image
	}
	if command[0] == "/flipmill" {
		command = command[1:]
	}
	var args, env []string
	for _, arg := range command {
		args = append(args, c.hosts.local(arg, own, files))
	}
	for name, value := range s.Environment {
		if value != nil {
			env = append(env, name+"="+c.hosts.local(*value, own, files))
		}
	}
	dir := c.dir
	if s.WorkingDir != "" {
		dir = files[s.WorkingDir]
	}
	return start(c.t, dir, env, program, args...)
}

// healthy runs the health check of a service, until it succeeds.
func (c *containers) healthy(s types.ServiceConfig, own string) {
	c.t.Helper()
	test := s.HealthCheck.Test
	until(c.t, func() error {
		if test[0] != "CMD" {
			return fmt.Errorf("service %s: health check %v needs a shell", s.Name, test)
		}
		if test[1] == "wget" { // of the image of NATS
			answer, err := ask(c.hosts.local(test[len(test)-1], own, nil))
			if err != nil {
				return fmt.Errorf("service %s: %w", s.Name, err)
			}
			return answer.Body.Close()
		}
		if check := c.start(s, own, test[1:]); check.exit() != 0 {
			return fmt.Errorf("service %s is not healthy: %s", s.Name, check.log())
		}
		return nil
	})
}

// up starts services and waits until they are healthy, each after those that it
// depends on.
func (c *containers) up(scale map[string]int) {
	c.t.Helper()
	started := map[string]bool{}
	for len(started) < len(c.project.Services) {
		before := len(started)
		for _, name := range slices.Sorted(maps.Keys(c.project.Services)) {
			s := c.project.Services[name]
			ready := !started[name]
			for dependency, how := range s.DependsOn {
				ready = ready && started[dependency]
				if how.Condition != types.ServiceConditionHealthy {
					c.t.Errorf("service %s does not wait until %s is healthy", name, dependency)
				}
			}
			if !ready {
				continue
			}
			for i := range max(scale[name], 1) {
				own := name
				if i > 0 {
					own = fmt.Sprintf("%s-%d", name, i+1)
				}
				c.hosts.address(own)
				c.running = append(c.running, c.start(s, own, s.Command))
				c.healthy(s, own)
			}
			started[name] = true
		}
		if len(started) == before {
			c.t.Fatalf("nothing can start after %v", started)
		}
	}
}

// TestComposeRunsAJob does what the head of the Compose file says, with
// processes in place of containers, and stops them as docker compose down does.
func TestComposeRunsAJob(t *testing.T) {
	t.Parallel()
	c := &containers{t: t, dir: t.TempDir(), project: composeProject(t), hosts: newHosts()}
	c.up(map[string]int{"worker": 3})

	verbs := composeProject(t, "verbs").Services["flipmill"]
	told := regexp.MustCompile(`dc run --rm flipmill (.*)`).FindStringSubmatch(read(t, composeFile))
	for _, command := range []string{told[1], "list", "verify /data/job=boards-5x5"} {
		c.start(verbs, "flipmill", strings.Fields(command)).want(0)
	}
	calm := t.TempDir()
	start(t, absolute(t, "../examples"), nil, "flipmill", "run", "boards-5x5.txt", "--size", "5x5", "-o", calm).want(0)
	got, want := hashes(t, filepath.Join(c.dir, "volumes", "datasets", "job=boards-5x5")), hashes(t, filepath.Join(calm, "job=boards-5x5"))
	if !maps.Equal(got, want) || len(got) == 0 {
		t.Errorf("the dataset is\n%v\nwant that of flipmill run:\n%v", got, want)
	}
	for _, p := range slices.Backward(c.running) {
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 && !strings.HasSuffix(p.cmd.Path, "nats-server") {
			t.Errorf("%v, told to stop, ends with %d", p.cmd, code)
		}
	}
}

func absolute(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestComposeIsCareful looks at what only an engine would do.
func TestComposeIsCareful(t *testing.T) {
	t.Parallel()
	project := composeProject(t, "verbs", "monitoring")
	drain := stopTimeout(t)
	for name, s := range project.Services {
		ours := s.Build != nil
		if !ours && !regexp.MustCompile(`:v?\d+\.\d+\.\d+(-alpine)?$`).MatchString(s.Image) {
			t.Errorf("service %s: image %s has no exact version", name, s.Image)
		}
		if !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Privileged {
			t.Errorf("service %s has privileges that it does not need", name)
		}
		if !s.ReadOnly && name != "grafana" { // which writes its configuration
			t.Errorf("service %s may write to its image", name)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" || name == "worker" {
				t.Errorf("service %s takes port %s of %q", name, p.Published, p.HostIP)
			}
		}
		if s.ContainerName != "" {
			t.Errorf("service %s has a name, so there cannot be two", name)
		}
		if s.Restart == types.RestartPolicyUnlessStopped && ours && (s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) <= drain) {
			t.Errorf("service %s is killed after %v, while it may take %v to stop", name, s.StopGracePeriod, drain)
		}
	}
	module := regexp.MustCompile(`nats-server/v2 v(\S+)`).FindStringSubmatch(read(t, "../go.mod"))
	if image := project.Services["nats"].Image; !strings.HasPrefix(image, "nats:"+module[1]) {
		t.Errorf("the image is %s, but tests use version %s", image, module[1])
	}
}

// stopTimeout returns how long a service may take to stop.
func stopTimeout(t testing.TB) time.Duration {
	t.Helper()
	text := regexp.MustCompile(`(?m)^stop-timeout: (\S+)$`).FindStringSubmatch(read(t, "../configs/service.yaml"))
	d, err := time.ParseDuration(text[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}
