package pages

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// policy lets a page load what is from here and nothing else, run no script that is
// written in it, and be part of no other page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP answers requests that only look, and come from our own pages or from
// people.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		s.fail(w, failure{http.StatusMethodNotAllowed, fmt.Errorf("these pages change nothing: GET is all that they answer")})
	case !s.ours(r.Host):
		// Another site may let its own name lead to this machine, and its scripts
		// would then be allowed to read what is answered.
		s.fail(w, failure{http.StatusMisdirectedRequest, fmt.Errorf("%q is none of the names of these pages: give it with --http-hosts", r.Host)})
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") != "navigate":
		s.fail(w, failure{http.StatusForbidden, fmt.Errorf("another site asks, and not a person")})
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// ours reports whether a host of a URL leads here by right. An address does: no name
// was looked up.
func (s *Site) ours(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return net.ParseIP(host) != nil || s.hosts[strings.ToLower(host)]
}
