package deployments_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// scaledObject is what KEDA calls so, as far as we use it.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef  struct{ Name string } `json:"scaleTargetRef"`
		MinReplicaCount int32                 `json:"minReplicaCount"`
		MaxReplicaCount int32                 `json:"maxReplicaCount"`
		PollingInterval int32                 `json:"pollingInterval"`
		CooldownPeriod  int32                 `json:"cooldownPeriod"`
		Advanced        struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
		} `json:"advanced"`
		Triggers []struct {
			Type     string            `json:"type"`
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// workload is whatever makes pods.
type workload struct {
	kind, name string
	replicas   *int32
	selector   *metav1.LabelSelector // nil for a Job
	service    string                // of a StatefulSet
	template   corev1.PodTemplateSpec
}

// cluster is what an overlay renders, by kind.
type cluster struct {
	workloads []workload
	services  []corev1.Service
	configs   map[string]corev1.ConfigMap
	accounts  map[string]bool
	policies  []networkingv1.NetworkPolicy
	budgets   []policyv1.PodDisruptionBudget
	scalers   []autoscalingv2.HorizontalPodAutoscaler
	keda      []scaledObject
}

// render renders overlays, and decodes each object into the type of the
// Kubernetes API that it says it has. A field that the type does not have fails.
func render(t *testing.T, names ...string) *cluster {
	t.Helper()
	c := &cluster{configs: map[string]corev1.ConfigMap{}, accounts: map[string]bool{}}
	for _, name := range names {
		c.add(t, filesys.MakeFsOnDisk(), filepath.Join("kubernetes", "overlays", name))
	}
	return c
}

func (c *cluster) add(t *testing.T, files filesys.FileSystem, dir string) {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, dir)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme, autoscalingv2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for _, r := range rendered.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetKind() == "ScaledObject" {
			var o scaledObject
			if err := yaml.UnmarshalStrict(text, &o); err != nil {
				t.Fatalf("%s: %v", r.CurId(), err)
			}
			c.keda = append(c.keda, o)
			continue
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", r.CurId(), err, text)
		}
		if !c.keep(object) {
			t.Errorf("%s: no test looks at a %T", r.CurId(), object)
		}
	}
}

func (c *cluster) keep(object runtime.Object) bool {
	switch o := object.(type) {
	case *appsv1.Deployment:
		c.workloads = append(c.workloads, workload{"Deployment", o.Name, o.Spec.Replicas, o.Spec.Selector, "", o.Spec.Template})
	case *appsv1.StatefulSet:
		w := workload{"StatefulSet", o.Name, o.Spec.Replicas, o.Spec.Selector, o.Spec.ServiceName, o.Spec.Template}
		for _, claim := range o.Spec.VolumeClaimTemplates {
			w.template.Spec.Volumes = append(w.template.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
			}})
		}
		c.workloads = append(c.workloads, w)
	case *batchv1.Job:
		c.workloads = append(c.workloads, workload{"Job", o.Name, nil, nil, "", o.Spec.Template})
	case *corev1.Service:
		c.services = append(c.services, *o)
	case *corev1.ConfigMap:
		c.configs[o.Name] = *o
	case *corev1.ServiceAccount:
		c.accounts[o.Name] = true
	case *corev1.Namespace:
	case *networkingv1.NetworkPolicy:
		c.policies = append(c.policies, *o)
	case *policyv1.PodDisruptionBudget:
		c.budgets = append(c.budgets, *o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		c.scalers = append(c.scalers, *o)
	default:
		return false
	}
	return true
}

// selected returns the workloads whose pods a selector chooses.
func (c *cluster) selected(t *testing.T, s *metav1.LabelSelector) (chosen []workload) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.workloads {
		if selector.Matches(labels.Set(w.template.Labels)) {
			chosen = append(chosen, w)
		}
	}
	return chosen
}

// TestKubernetesReferences: whatever names something names what is there.
func TestKubernetesReferences(t *testing.T) {
	t.Parallel()
	for _, overlay := range []string{"dev", "prod"} {
		c := render(t, overlay, overlay+"/submit")
		for _, w := range c.workloads {
			c.checkPod(t, overlay+": "+w.kind+" "+w.name, &w.template)
			if w.selector != nil && !slices.ContainsFunc(c.selected(t, w.selector), func(o workload) bool { return o.name == w.name }) {
				t.Errorf("%s: %s %s does not select its own pods", overlay, w.kind, w.name)
			}
			if w.service != "" && !slices.ContainsFunc(c.services, func(s corev1.Service) bool { return s.Name == w.service }) {
				t.Errorf("%s: %s %s: no service %s", overlay, w.kind, w.name, w.service)
			}
			for _, spread := range w.template.Spec.TopologySpreadConstraints {
				if len(c.selected(t, spread.LabelSelector)) != 1 {
					t.Errorf("%s: %s %s spreads other pods", overlay, w.kind, w.name)
				}
			}
		}
		for _, s := range c.services {
			chosen := c.selected(t, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
			if len(chosen) != 1 {
				t.Fatalf("%s: service %s selects %d workloads", overlay, s.Name, len(chosen))
			}
			for _, p := range s.Spec.Ports {
				if port, ok := portOf(&chosen[0].template, p.Name); !ok || port != p.Port {
					t.Errorf("%s: service %s: port %s is not one of its pods'", overlay, s.Name, p.Name)
				}
			}
		}
		for _, b := range c.budgets {
			if len(c.selected(t, b.Spec.Selector)) != 1 || b.Spec.MaxUnavailable.String() == "0" {
				t.Errorf("%s: the budget %s selects no pods, or lets none go", overlay, b.Name)
			}
		}
	}
}

func portOf(pod *corev1.PodTemplateSpec, name string) (int32, bool) {
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == name {
			return p.ContainerPort, true
		}
	}
	return 0, false
}

// secrets are those that docs/operations.md tells to make.
func secrets(t *testing.T) string { return read(t, "../docs/operations.md") }

// checkPod looks at what a pod refers to, and that it may do no more than it must.
func (c *cluster) checkPod(t *testing.T, where string, pod *corev1.PodTemplateSpec) {
	t.Helper()
	spec := pod.Spec
	if !c.accounts[spec.ServiceAccountName] || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Errorf("%s: no service account %q, or its token is mounted", where, spec.ServiceAccountName)
	}
	// A drain, and a moment to answer the last messages.
	if grace := spec.TerminationGracePeriodSeconds; !strings.Contains(where, "setup") && (grace == nil || float64(*grace) < 2*stopTimeout(t).Seconds()) {
		t.Errorf("%s: it is killed before it can stop", where)
	}
	s := spec.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s: its pod has more rights than it needs", where)
	}
	volumes := map[string]bool{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = true
		switch {
		case v.ConfigMap != nil:
			if _, ok := c.configs[v.ConfigMap.Name]; !ok {
				t.Errorf("%s: no ConfigMap %s", where, v.ConfigMap.Name)
			}
		case v.Secret != nil:
			if !strings.Contains(secrets(t), " "+v.Secret.SecretName+" ") {
				t.Errorf("%s: nobody is told to make the secret %s", where, v.Secret.SecretName)
			}
			if v.Secret.DefaultMode == nil || *v.Secret.DefaultMode&0o007 != 0 {
				t.Errorf("%s: everybody may read the secret %s", where, v.Secret.SecretName)
			}
		case v.PersistentVolumeClaim == nil:
			t.Errorf("%s: volume %s is of no kind that we know", where, v.Name)
		}
	}
	for _, container := range spec.Containers {
		c.checkContainer(t, where, pod, &container)
		for _, m := range container.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: no volume %s", where, m.Name)
			}
			delete(volumes, m.Name)
		}
	}
	for name := range volumes {
		t.Errorf("%s: nobody mounts the volume %s", where, name)
	}
}

func (c *cluster) checkContainer(t *testing.T, where string, pod *corev1.PodTemplateSpec, container *corev1.Container) {
	t.Helper()
	s := container.SecurityContext
	if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") {
		t.Errorf("%s: its container has more rights than it needs", where)
	}
	request, limit := container.Resources.Requests.Memory().Value(), container.Resources.Limits.Memory().Value()
	if share := float64(request) / float64(limit); share < 0.85 || share > 0.95 {
		t.Errorf("%s: the memory that Go may take is %.2f of the limit, want nine tenths", where, share)
	}
	from := map[string]string{}
	for _, e := range container.Env {
		if e.ValueFrom != nil && e.ValueFrom.ResourceFieldRef != nil {
			from[e.Name] = e.ValueFrom.ResourceFieldRef.Resource
			if e.ValueFrom.ResourceFieldRef.ContainerName != container.Name {
				t.Errorf("%s: %s follows another container", where, e.Name)
			}
		}
	}
	if _, limited := container.Resources.Limits[corev1.ResourceCPU]; limited && from["GOMAXPROCS"] != "limits.cpu" {
		t.Errorf("%s: GOMAXPROCS does not follow the limit", where)
	}
	if !strings.Contains(where, "setup") && from["GOMEMLIMIT"] != "requests.memory" {
		t.Errorf("%s: GOMEMLIMIT does not follow the limit", where)
	}
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe != nil {
			if _, ok := portOf(pod, probe.HTTPGet.Port.String()); !ok {
				t.Errorf("%s: a probe asks at port %s, which is not there", where, probe.HTTPGet.Port.String())
			}
		}
	}
	if !strings.Contains(where, "setup") && container.LivenessProbe == nil {
		t.Errorf("%s: nobody asks whether it lives", where)
	}
}

// TestKubernetesNetwork: nothing is open but what a policy opens, and that is
// between pods that are there, at ports that they have.
func TestKubernetesNetwork(t *testing.T) {
	t.Parallel()
	for _, overlay := range []string{"dev", "prod"} {
		c := render(t, overlay, overlay+"/submit")
		denied := false
		for _, p := range c.policies {
			chosen := c.selected(t, &p.Spec.PodSelector)
			if len(chosen) == 0 {
				t.Errorf("%s: policy %s is for no pods", overlay, p.Name)
			}
			denied = denied || len(chosen) == len(c.workloads) && len(p.Spec.PolicyTypes) == 2 && p.Spec.Ingress == nil && p.Spec.Egress == nil
			for _, in := range p.Spec.Ingress {
				c.checkPeers(t, overlay+": "+p.Name, in.From, in.Ports, chosen)
			}
			for _, out := range p.Spec.Egress {
				var to []workload
				for _, peer := range out.To {
					if peer.PodSelector != nil {
						to = append(to, c.selected(t, peer.PodSelector)...)
					}
				}
				c.checkPeers(t, overlay+": "+p.Name, out.To, out.Ports, to)
			}
		}
		if !denied {
			t.Errorf("%s: no policy denies everything else", overlay)
		}
	}
}

// checkPeers: peers within the namespace exist, and named ports are ports of the
// pods that are spoken to.
func (c *cluster) checkPeers(t *testing.T, where string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, asked []workload) {
	t.Helper()
	if len(peers) == 0 || len(ports) == 0 {
		t.Errorf("%s: it opens something to everybody, or every port", where)
	}
	for _, peer := range peers {
		if peer.PodSelector != nil && len(c.selected(t, peer.PodSelector)) == 0 {
			t.Errorf("%s: there are no such peers", where)
		}
	}
	for _, w := range asked {
		for _, p := range ports {
			if _, ok := portOf(&w.template, p.Port.StrVal); !ok && p.Port.StrVal != "" {
				t.Errorf("%s: %s has no port %s", where, w.name, p.Port.StrVal)
			}
		}
	}
}

// TestKubernetesAutoscaling: an autoscaler has the worker's replicas for itself,
// and takes them away slowly. That what KEDA counts is there is shown by
// TestKubernetesProdRunsAJob.
func TestKubernetesAutoscaling(t *testing.T) {
	t.Parallel()
	prod := render(t, "prod")
	if len(prod.keda) != 1 || len(prod.keda[0].Spec.Triggers) != 3 {
		t.Fatalf("prod has %d ScaledObjects, want 1 with a trigger for each lane", len(prod.keda))
	}
	keda := prod.keda[0].Spec
	worker := func(c *cluster) workload {
		i := slices.IndexFunc(c.workloads, func(w workload) bool { return w.name == "worker" })
		return c.workloads[i]
	}
	if w := worker(prod); w.replicas != nil || keda.ScaleTargetRef.Name != w.name {
		t.Error("prod: the worker's replicas are not KEDA's to say")
	}
	if down := keda.Advanced.HorizontalPodAutoscalerConfig.Behavior.ScaleDown; *down.StabilizationWindowSeconds < 60 {
		t.Error("prod: KEDA takes workers away at each short lull")
	}
	// 4 tasks for each core of a worker, as max-ack-pending wants it.
	want := fmt.Sprint(4 * worker(prod).template.Spec.Containers[0].Resources.Limits.Cpu().Value())
	for _, trigger := range keda.Triggers {
		if trigger.Type != "nats-jetstream" || trigger.Metadata["lagThreshold"] != want {
			t.Errorf("prod: trigger %v, want %s tasks for each worker", trigger, want)
		}
	}

	// The other autoscaler, in place of KEDA.
	files := filesys.MakeFsInMemory()
	for _, dir := range []string{"kubernetes", "nats", "../configs"} {
		copyTree(t, files, dir)
	}
	const overlay = "/deployments/kubernetes/overlays/prod"
	text := strings.Replace(read(t, "kubernetes/overlays/prod/kustomization.yaml"), "components/keda\n", "components/hpa\n", 1)
	if err := files.WriteFile(overlay+"/kustomization.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	hpa := &cluster{configs: map[string]corev1.ConfigMap{}, accounts: map[string]bool{}}
	hpa.add(t, files, overlay)
	if len(hpa.scalers) != 1 || len(hpa.keda) != 0 {
		t.Fatalf("with hpa there are %d autoscalers, want 1", len(hpa.scalers))
	}
	if w, target := worker(hpa), hpa.scalers[0].Spec.ScaleTargetRef; w.replicas != nil || target.Name != w.name || target.Kind != w.kind {
		t.Error("the worker's replicas are not the autoscaler's to say")
	}
}

// copyTree copies a folder, named from this one, into another file system that
// has this folder as /deployments.
func copyTree(t *testing.T, to filesys.FileSystem, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return to.WriteFile(filepath.Join("/deployments", name), []byte(read(t, name)))
	})
	if err != nil {
		t.Fatal(err)
	}
}
