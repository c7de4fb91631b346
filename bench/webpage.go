package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// A page of webRequests requests, which a browser loads over webConnections connections,
// from a dev server on this machine: directly, and in a preview through the host and the
// daemon. The second may take twice as long, or webAddition more.
const (
	webRequests    = 60
	webConnections = 6
	webSize        = 8 << 10 // bytes of each part
	webAddition    = 100     // ms
	webTimes       = 20
)

// serveWeb is the dev server. It prints its port.
func serveWeb() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	part := bytes.Repeat([]byte("export const n = 1\n"), webSize/19)
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(part) // fails if the client is gone
	}))
}

// webPart compares the two ways.
func webPart(ctx context.Context, s settings) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*startWithin)
	defer cancel()
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	id, uri, err := r.start(ctx, self, childArg, "web", "-")
	if err != nil {
		return nil, err
	}
	port, err := poll(ctx, func() (int, error) {
		ports, err := r.door.Ports(ctx, id)
		if err == nil && len(ports.Ports) == 0 {
			err = errNotYet
		}
		if err != nil {
			return 0, err
		}
		return ports.Ports[0].Port, nil
	})
	if err == nil {
		err = r.runProgram(ctx, s.programs.daemon[0], "lend", id, "--port", fmt.Sprint(port))
	}
	if err != nil {
		return nil, err
	}
	direct := &webBrowser{origin: fmt.Sprintf("http://127.0.0.1:%d", port)}
	preview, err := poll(ctx, func() (*webBrowser, error) {
		return openPreview(ctx, r.host.URL, uri, port)
	})
	if err != nil {
		return nil, err
	}
	var plain, both []float64
	for range webTimes * s.rounds { // in turn, each time with new connections
		for _, one := range []struct {
			b     *webBrowser
			times *[]float64
		}{{direct, &plain}, {preview, &both}} {
			took, err := one.b.load(ctx)
			if err != nil {
				return nil, err
			}
			*one.times = append(*one.times, millis(took))
		}
	}
	const part = "a page of 60 requests"
	a, b := median(plain), median(both)
	return []row{{Part: part, Name: "directly, p50", Value: a, Unit: "ms"},
		row{Part: part, Name: "in a preview, p50", Value: b, Unit: "ms", Note: "twice the above, or 100 ms more"}.most(max(2*a, a+webAddition))}, nil
}

// webBrowser loads the page as a browser does.
type webBrowser struct{ origin, cookie string }

// openPreview asks the host's page for a preview, as a click there does.
func openPreview(ctx context.Context, host, uri string, port int) (*webBrowser, error) {
	page := "http" + strings.TrimPrefix(strings.TrimSuffix(host, "/"), "ws")
	hash := sha256.Sum256([]byte(uri)) // the host's id of the terminal
	id := "pty-" + strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:10])
	asked, err := json.Marshal(map[string]any{"terminal": id, "port": port})
	if err != nil {
		return nil, err
	}
	c := webClient()
	defer c.CloseIdleConnections()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	var invited struct{ URL, Code string }
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, page+"/previews", bytes.NewReader(asked))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Origin", page)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	answer.Body.Close()
	if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(text, &invited) != nil {
		return nil, fmt.Errorf("%w: the host answers %s %s", errNotYet, answer.Status, text)
	}
	if r, err = http.NewRequestWithContext(ctx, http.MethodPost, invited.URL, strings.NewReader(url.Values{"code": {invited.Code}}.Encode())); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Origin": page, "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"} {
		r.Header.Set(name, value)
	}
	if answer, err = c.Do(r); err != nil {
		return nil, err
	}
	answer.Body.Close()
	if len(answer.Cookies()) != 1 {
		return nil, fmt.Errorf("the preview answers %s without its cookie", answer.Status)
	}
	at, err := url.Parse(invited.URL)
	return &webBrowser{"http://" + at.Host, answer.Cookies()[0].Name + "=" + answer.Cookies()[0].Value}, err
}

// webClient has new connections, as many as a browser. Names below localhost lead to this
// machine.
func webClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxConnsPerHost: webConnections, MaxIdleConnsPerHost: webConnections,
		DialContext: func(ctx context.Context, network, at string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(at)
			return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
		}}}
}

// load gets the page, then its parts.
func (b *webBrowser) load(ctx context.Context) (time.Duration, error) {
	c := webClient()
	defer c.CloseIdleConnections()
	began := time.Now()
	if err := b.get(ctx, c, "/", "document"); err != nil {
		return 0, err
	}
	var group sync.WaitGroup
	failed := make([]error, webRequests)
	for n := 1; n < webRequests; n++ {
		group.Go(func() { failed[n] = b.get(ctx, c, fmt.Sprintf("/part-%d.js", n), "script") })
	}
	group.Wait()
	for _, err := range failed {
		if err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func (b *webBrowser) get(ctx context.Context, c *http.Client, at, dest string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.origin+at, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Cookie", b.cookie)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Dest", dest)
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && (answer.StatusCode != http.StatusOK || n < webSize/2) {
		err = fmt.Errorf("%s answers %s with %d bytes", at, answer.Status, n)
	}
	return err
}
