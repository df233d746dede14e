package queue

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
)

// Said where the broker library's own words do not say what to do.
var (
	errNoTLS  = errors.New("it offers no TLS, and from another host only --insecure accepts that")
	errNoHost = errors.New("another host, and neither TLS nor --insecure is asked for")
)

// securityOptions says how the two ends of a connection prove who they are.
//
// Whatever leaves this host is encrypted and its server verified, unless the
// user said otherwise. A server on this host may be without TLS; then no other
// is connected to, even if that server advertises one.
func securityOptions(o Options) ([]nats.Option, error) {
	if o.Server != nil {
		return nil, nil
	}
	secure, err := leavesHost(o.URL)
	if err != nil {
		return nil, err
	}
	secure = secure && !o.Insecure || o.CA != "" || o.Cert != "" || strings.Contains(o.URL, "tls://")
	var options []nats.Option
	switch {
	case secure:
		options = append(options, nats.Secure(&tls.Config{MinVersion: tls.VersionTLS12}))
	case !o.Insecure:
		options = append(options, nats.SetCustomDialer(&net.Dialer{Timeout: o.Timeout, Control: onlyLoopback}))
	}
	if o.CA != "" {
		if err := nats.RootCAs(o.CA)(new(nats.Options)); err != nil {
			return nil, fmt.Errorf("tls-ca %s: %w", o.CA, err)
		}
		options = append(options, nats.RootCAs(o.CA))
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("a client certificate and its key belong together: name both files, tls-cert and tls-key")
	}
	if o.Cert != "" {
		if err := nats.ClientCert(o.Cert, o.Key)(new(nats.Options)); err != nil {
			return nil, fmt.Errorf("tls-cert %s with tls-key %s: %w", o.Cert, o.Key, err)
		}
		options = append(options, nats.ClientCert(o.Cert, o.Key))
	}
	if o.Credentials != "" {
		identity, err := identityOption(o.Credentials)
		if err == nil {
			err = identity(new(nats.Options)) // which may read the file
		}
		if err != nil {
			return nil, fmt.Errorf("credentials %s: %w", o.Credentials, err)
		}
		options = append(options, identity)
	}
	return options, nil
}

// leavesHost checks a list of URLs, and reports whether one of them names
// another host than this.
func leavesHost(list string) (bool, error) {
	leaves := false
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		switch {
		case err != nil:
			// Its text is not repeated: there may be a password in it.
			return false, errors.New("the broker's URL cannot be read: want nats://HOST:PORT or tls://HOST:PORT")
		case u.User != nil:
			return false, errors.New("the broker's URL holds a user or a password: put them into a file, and name that with --credentials")
		case u.Scheme != "nats" && u.Scheme != "tls", u.Hostname() == "":
			return false, fmt.Errorf("broker URL %s: want nats://HOST:PORT or tls://HOST:PORT", text)
		}
		ip := net.ParseIP(u.Hostname())
		leaves = leaves || u.Hostname() != "localhost" && !ip.IsLoopback()
	}
	return leaves, nil
}

// onlyLoopback refuses to dial any other host than this. It is asked for each
// address, after names are resolved.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err == nil && !net.ParseIP(host).IsLoopback() {
		err = errNoHost
	}
	return err
}

// identityOption reads a file that says who we are, in one of three forms that
// cannot be confused: a credentials file of a user with a JWT, the seed of a
// user's nkey, or one line user:password. The file is read again for each
// connection, so that a new password takes effect without a restart.
func identityOption(file string) (nats.Option, error) {
	if _, _, err := userPassword(file); err == nil {
		return nats.UserInfoHandler(func() (string, string) {
			user, password, _ := userPassword(file) // the broker denies what is unreadable now
			return user, password
		}), nil
	}
	data, err := os.ReadFile(file)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err) // a PathError, whose path the caller names
	case bytes.Contains(data, []byte("-----BEGIN NATS USER JWT-----")):
		return nats.UserCredentials(file), nil
	case bytes.HasPrefix(data, []byte("SU")), bytes.Contains(data, []byte("-----BEGIN USER NKEY SEED-----")):
		option, err := nats.NkeyOptionFromSeed(file)
		if err != nil {
			return nil, errors.New("not the seed of a user's nkey, though it looks like one")
		}
		return option, nil
	}
	return nil, errors.New("want a credentials file (.creds), the seed of a user's nkey (SU...), or one line user:password")
}

func userPassword(file string) (user, password string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	line := strings.TrimRight(string(data), "\r\n")
	user, password, found := strings.Cut(line, ":")
	if !found || user == "" || strings.ContainsAny(line, "\r\n") {
		return "", "", errors.New("not one line user:password")
	}
	return user, password, nil
}
