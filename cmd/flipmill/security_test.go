//go:build cluster

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flipmill/flipmill/pkg/queue"
	"github.com/nats-io/nkeys"
)

// secureCluster is a cluster whose broker is the one of deployments/nats/secure.conf.
type secureCluster struct {
	*cluster
	seeds map[queue.Role]string // files
	cert  string                // file
	key   string                // file
}

var listening = regexp.MustCompile(`Listening for client connections on \S+:(\d+)`)

func newSecureCluster(t *testing.T) *secureCluster {
	t.Helper()
	s := &secureCluster{cluster: &cluster{t: t, dir: t.TempDir()}}
	for _, variable := range append(s.identities(), "NATS_LISTEN=127.0.0.1:-1", "NATS_STORE="+filepath.Join(s.dir, "store")) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	conf, err := filepath.Abs("../../deployments/nats/secure.conf")
	check(t, err)
	s.broker = start(t, nil, s.dir, "nats-server", "-c", conf)
	s.url = "nats://127.0.0.1:" + listening.FindStringSubmatch(s.broker.await("Listening for client connections", 1))[1]
	s.broker.await("Server is ready", 1)
	return s
}

// identities makes a certificate and a key for each role, and returns what a
// server must know of them, as variables of its environment.
func (s *secureCluster) identities() (environment []string) {
	s.t.Helper()
	s.seeds = map[queue.Role]string{}
	s.cert, s.key = writeCertificate(s.t, s.dir)
	for _, role := range queue.Roles() {
		user, err := nkeys.CreateUser()
		check(s.t, err)
		seed, err := user.Seed()
		check(s.t, err)
		public, err := user.PublicKey()
		check(s.t, err)
		s.seeds[role] = filepath.Join(s.dir, string(role)+".nk")
		check(s.t, os.WriteFile(s.seeds[role], seed, 0o600))
		environment = append(environment, strings.ToUpper(string(role))+"_NKEY="+public)
	}
	return append(environment, "NATS_CERT="+s.cert, "NATS_KEY="+s.key, "NATS_CA="+s.cert)
}

// as starts a verb with the identity of a role.
func (s *secureCluster) as(role queue.Role, verb string, args ...string) *process {
	s.t.Helper()
	return s.start(verb, slices.Concat(args, []string{"--credentials", s.seeds[role], "--tls-ca", s.cert, "--tls-cert", s.cert, "--tls-key", s.key})...)
}

// writeCertificate makes a certificate that is authority, server and client in one.
func writeCertificate(t testing.TB, dir string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 3, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	check(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	certFile, keyFile = filepath.Join(dir, "all.crt"), filepath.Join(dir, "all.key")
	check(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	check(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return certFile, keyFile
}

// Each verb does a whole job with the permissions of its role, over TLS; with
// those of another it ends at once with exit code 4 and says why.
func TestLeastPrivilege(t *testing.T) {
	s := newSecureCluster(t)
	want := calm(t, s.dir)
	s.as(queue.Operator, "setup").succeed()
	for verb, roles := range map[string][]queue.Role{
		"setup":      {queue.Producer, queue.Worker, queue.Aggregator, queue.Observer},
		"worker":     {queue.Producer, queue.Aggregator, queue.Observer, queue.Operator},
		"aggregator": {queue.Producer, queue.Worker, queue.Observer, queue.Operator},
		"submit":     {queue.Worker, queue.Aggregator, queue.Observer, queue.Operator},
	} {
		for _, role := range roles {
			var args []string
			if verb == "submit" {
				args = smallJob
			}
			s.mustDeny(s.as(role, verb, args...))
		}
	}
	s.mustDeny(s.start("worker", "--tls-ca", s.cert, "--tls-cert", s.cert, "--tls-key", s.key)) // nobody

	submit := s.as(queue.Producer, "submit", append(smallJob, "--wait")...)
	submit.await("waits for its aggregator", 1)
	for _, verb := range []string{"pause", "resume"} {
		s.mustDeny(s.as(queue.Observer, verb, "boards"))
		s.as(queue.Operator, verb, "boards").succeed()
	}
	aggregator := s.as(queue.Aggregator, "aggregator", "-o", "far")
	worker := s.as(queue.Worker, "worker")
	submit.succeed()
	wantSame(t, hashes(t, filepath.Join(s.dir, "far", "job=boards")), want)
	for _, verb := range []string{"list", "status", "wait", "watch", "why"} {
		args := []string{"boards"}
		if verb == "list" {
			args = nil
		}
		s.as(queue.Observer, verb, args...).succeed()
		s.as(queue.Operator, verb, args...).succeed()
	}
	aggregator.kill()
	worker.kill()
}

func (s *secureCluster) mustDeny(p *process) {
	s.t.Helper()
	if code := p.exit(); code != int(exitBroker) || !strings.Contains(p.log(), "permission denied") {
		s.t.Errorf("%s ends with %d, want %d and to say that permission is denied:\n%s", p.name, code, exitBroker, p.log())
	}
}

// With the credentials of any role, doctor says which it is; an operator's are enough to
// look, too.
func TestDoctorSecure(t *testing.T) {
	s := newSecureCluster(t)
	s.as(queue.Operator, "setup").succeed()
	for _, role := range queue.Roles() {
		findings := wantFindings(t, s.as(role, "doctor", "--json"), exitOK)
		fit := string(role)
		if role == queue.Operator {
			fit = "observer, operator"
		}
		if !slices.ContainsFunc(findings, func(f queue.Finding) bool {
			return f.Check == "permissions" && strings.HasSuffix(f.Found, "enough for: "+fit)
		}) {
			t.Errorf("%s: got %+v", role, findings)
		}
	}
	check(t, os.Chmod(s.seeds[queue.Worker], 0o644))
	wantFindings(t, s.as(queue.Worker, "doctor", "--json"), exitError, "secret")
	wantFindings(t, s.start("doctor", "--json", "--tls-ca", s.cert, "--tls-cert", s.cert, "--tls-key", s.key), exitBroker, "connect")
	wantFindings(t, s.start("doctor", "--json", "--tls-ca", s.key), exitConfig, "connect")
}
