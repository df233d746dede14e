package queue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// authority issues certificates, as PEM files in dir.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.issue(t, "server", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	a.issue(t, "elsewhere", &x509.Certificate{DNSNames: []string{"nats.example.org"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.issue(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return a
}

// file returns the name of a PEM file: a certificate .crt or a key .key.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) issue(t testing.TB, name string, cert *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	cert.SerialNumber = big.NewInt(time.Now().UnixNano())
	cert.Subject = pkix.Name{CommonName: name}
	cert.NotBefore, cert.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(0, 3, 0)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = cert, key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), signer)
	ok(t, err)
	cert, err = x509.ParseCertificate(der)
	ok(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	ok(t, err)
	writeFile(t, a.file(name+".crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, a.file(name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return cert, key
}

func writeFile(t testing.TB, name, text string) string {
	t.Helper()
	ok(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// identity returns the name of a credentials file with that text.
func identity(t testing.TB, text string) string {
	t.Helper()
	return writeFile(t, filepath.Join(t.TempDir(), "credentials"), text)
}

// startWith starts a broker on a loopback port, with options of its own.
func startWith(t testing.TB, change func(*server.Options)) *Server {
	t.Helper()
	options, err := natsServerOptions(ServerOptions{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
	ok(t, err)
	change(options)
	s, err := startServer(options, false)
	ok(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func withTLS(t testing.TB, a *authority, cert string, verify bool) func(*server.Options) {
	config, err := server.GenTLSConfig(&server.TLSConfigOpts{
		CertFile: a.file(cert + ".crt"), KeyFile: a.file(cert + ".key"), CaFile: a.file("ca.crt"), Verify: verify, Timeout: patience.Seconds(),
	})
	ok(t, err)
	return func(o *server.Options) { o.TLSConfig, o.TLSTimeout = config, patience.Seconds() }
}

func TestTLS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	once := startWith(t, withTLS(t, a, "server", false)).URL()
	mutual := startWith(t, withTLS(t, a, "server", true)).URL()
	elsewhere := startWith(t, withTLS(t, a, "elsewhere", false)).URL()
	plain := startWith(t, func(*server.Options) {}).URL()
	old := withTLS(t, a, "server", false)
	outdated := startWith(t, func(o *server.Options) {
		old(o)
		o.TLSConfig.MinVersion, o.TLSConfig.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}).URL()
	ca := a.file("ca.crt")
	cases := []struct {
		name string
		o    Options
		want string // pattern of the error; empty for none
	}{
		{"verified", Options{URL: once, CA: ca}, ""},
		{"authority unknown to the system", Options{URL: once}, "unknown authority"},
		{"insecure still verifies", Options{URL: once, Insecure: true}, "unknown authority"},
		{"another authority", Options{URL: once, CA: stranger.file("ca.crt")}, "unknown authority"},
		{"name of another host", Options{URL: elsewhere, CA: ca}, "127.0.0.1"},
		{"both verified", Options{URL: mutual, CA: ca, Cert: a.file("client.crt"), Key: a.file("client.key")}, ""},
		{"no client certificate", Options{URL: mutual, CA: ca}, "certificate required|want a client certificate"},
		{"client certificate of another authority", Options{URL: mutual, CA: ca, Cert: stranger.file("client.crt"), Key: stranger.file("client.key")}, "unknown certificate authority|want a client certificate"},
		{"TLS 1.1", Options{URL: outdated, CA: ca}, "protocol version"},
		{"plain, this host", Options{URL: plain}, ""},
		{"plain, although a CA is named", Options{URL: plain, CA: ca}, "offers no TLS"},
		{"plain, although tls:// is asked for", Options{URL: strings.Replace(plain, "nats://", "tls://", 1)}, "offers no TLS"},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Connect(testContext(t), tt.o)
			switch {
			case err == nil:
				c.Close()
				if tt.want != "" {
					t.Errorf("connected, want an error with %q", tt.want)
				}
			case tt.want == "" || !regexp.MustCompile(tt.want).MatchString(err.Error()):
				t.Errorf("got error %q, want %q", err, tt.want)
			default:
				wantError(t, err, ErrUnreachable)
			}
		})
	}
}

// Nothing goes unencrypted to another host, and no secret stands in a URL.
func TestRefusedBeforeConnecting(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t)
	missing := filepath.Join(dir, "missing")
	junk := writeFile(t, filepath.Join(dir, "junk"), "hello\n")
	for _, o := range []Options{
		{},
		{URL: "http://127.0.0.1"},
		{URL: "nats://"},
		{URL: "nats://me:secret@127.0.0.1"},
		{URL: "nats://127.0.0.1:4222,token@127.0.0.1:4223"},
		{URL: "nats://me:sec%ret@127.0.0.1"},
		{URL: "127.0.0.1", CA: missing},
		{URL: "127.0.0.1", CA: junk},
		{URL: "127.0.0.1", Cert: a.file("client.crt")},
		{URL: "127.0.0.1", Key: a.file("client.key")},
		{URL: "127.0.0.1", Cert: a.file("client.crt"), Key: a.file("server.key")},
		{URL: "127.0.0.1", Credentials: missing},
		{URL: "127.0.0.1", Credentials: dir},
		{URL: "127.0.0.1", Credentials: junk},
		{URL: "127.0.0.1", Credentials: writeFile(t, filepath.Join(dir, "bad.nk"), "SUsecret\n")},
		{URL: "127.0.0.1", Credentials: writeFile(t, filepath.Join(dir, "two"), "me:secret\nyou:secret\n")},
	} {
		_, err := Connect(testContext(t), o)
		wantError(t, err, ErrOptions)
		if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "sec%ret") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func TestPlaintextStaysOnThisHost(t *testing.T) {
	for list, want := range map[string]bool{
		"localhost": false, "nats://127.0.0.1:4222,nats://[::1]:4222": false, "nats://127.8.8.8": false,
		"10.0.0.1": true, "nats.example.org:4222": true, "localhost,nats://192.168.1.1": true, "nats://0.0.0.0:4222": true, "localhost.example.org": true,
	} {
		got, err := leavesHost(list)
		ok(t, err)
		if got != want {
			t.Errorf("%s leaves the host: %v", list, got)
		}
	}
	ok(t, onlyLoopback("tcp4", "127.0.0.1:4222", nil))
	wantError(t, onlyLoopback("tcp4", "10.0.0.1:4222", nil), errNoHost)

	// A server that is reached by an address of this machine that is not loopback.
	address := otherAddress(t)
	s := startWith(t, func(o *server.Options) { o.Host = "0.0.0.0" })
	url := strings.Replace(s.URL(), "0.0.0.0", address, 1)
	_, err := Connect(testContext(t), Options{URL: url})
	wantError(t, err, errNoTLS)
	wantError(t, err, ErrUnreachable)
	connect(t, Options{URL: url, Insecure: true})
}

// otherAddress returns an address of this machine outside of loopback.
func otherAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	ok(t, err)
	for _, a := range addresses {
		if n, isNet := a.(*net.IPNet); isNet && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback's")
	return ""
}

func TestCredentials(t *testing.T) {
	user, err := nkeys.CreateUser()
	ok(t, err)
	seed, err := user.Seed()
	ok(t, err)
	public, err := user.PublicKey()
	ok(t, err)
	other, err := nkeys.CreateUser()
	ok(t, err)
	otherSeed, err := other.Seed()
	ok(t, err)
	keys := startWith(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "me", Password: "a:b c"}}
		o.Nkeys = []*server.NkeyUser{{Nkey: public}}
	}).URL()
	tokens, creds := startOperator(t)
	for name, tt := range map[string]struct {
		url, text string
		want      error
	}{
		"password":       {keys, "me:a:b c\n", nil},
		"wrong password": {keys, "me:x\n", ErrDenied},
		"nkey":           {keys, string(seed) + "\n", nil},
		"unknown nkey":   {keys, string(otherSeed), ErrDenied},
		"none":           {keys, "", ErrDenied},
		"creds":          {tokens, creds, nil},
		"nkey for creds": {tokens, string(seed), ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{URL: tt.url}
			if tt.text != "" {
				o.Credentials = identity(t, tt.text)
			}
			c, err := Connect(testContext(t), o)
			if err == nil {
				c.Close()
			}
			wantError(t, err, tt.want)
		})
	}
}

// startOperator starts a broker that trusts an operator's key, and returns its
// URL and the credentials file of a user.
func startOperator(t *testing.T) (url, creds string) {
	t.Helper()
	operator, err := nkeys.CreateOperator()
	ok(t, err)
	account, err := nkeys.CreateAccount()
	ok(t, err)
	user, err := nkeys.CreateUser()
	ok(t, err)
	public := func(k nkeys.KeyPair) string {
		text, err := k.PublicKey()
		ok(t, err)
		return text
	}
	seed, err := user.Seed()
	ok(t, err)
	operatorJWT, err := jwt.NewOperatorClaims(public(operator)).Encode(operator)
	ok(t, err)
	accountJWT, err := jwt.NewAccountClaims(public(account)).Encode(operator)
	ok(t, err)
	userJWT, err := jwt.NewUserClaims(public(user)).Encode(account)
	ok(t, err)
	config, err := jwt.FormatUserConfig(userJWT, seed)
	ok(t, err)
	resolver := &server.MemAccResolver{}
	ok(t, resolver.Store(public(account), accountJWT))
	claims, err := jwt.DecodeOperatorClaims(operatorJWT)
	ok(t, err)
	s := startWith(t, func(o *server.Options) {
		o.JetStream = false // only who connects is the matter here
		o.TrustedOperators = []*jwt.OperatorClaims{claims}
		o.AccountResolver = resolver
	})
	return s.URL(), string(config)
}
