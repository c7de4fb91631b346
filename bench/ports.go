package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"tether/agent/localapi"
	"tether/ahp/client"
	"tether/host"
	"tether/host/rights"
)

const (
	floorPorts      = 100.0 // MB/s of a download on loopback
	floorPortsFar   = 10.0  // the same at a round trip of farAway
	floorEchoBeside = 1.5   // echo beside a download, of the same run without
	farAway         = 50 * time.Millisecond
)

// download is the size of one, in MB.
func (s settings) download() int { return max(1, s.megabytes/2) }

// portsPart downloads from a dev server in a lent terminal through daemon and host, and
// types at another terminal meanwhile.
func portsPart(ctx context.Context, s settings) ([]row, error) {
	const part = "a lent port"
	near, err := newDevServer(ctx, s, 0)
	if err != nil {
		return nil, err
	}
	defer near.close()
	rate, err := near.rates(ctx, s.rounds, s.download())
	if err != nil {
		return nil, err
	}
	rows := []row{row{Part: part, Name: "download on loopback", Value: rate, Unit: "MB/s"}.least(floorPorts)}
	alone, beside, meanwhile, err := near.echoes(ctx, s.keys, s.download())
	if err != nil {
		return rows, err
	}
	rows = append(rows, quantiles(part, "echo at the observer", alone)...)
	rows = append(rows, quantiles(part, "echo beside downloads", beside)...)
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		rows = append(rows, row{Part: part, Name: "echo beside downloads, of that without, " + q.name,
			Value: quantile(beside, q.at) / quantile(alone, q.at)}.most(floorEchoBeside))
	}
	rows = append(rows, row{Part: part, Name: "the downloads meanwhile", Value: meanwhile, Unit: "MB/s"})
	far, err := newDevServer(ctx, s, farAway)
	if err != nil {
		return rows, err
	}
	defer far.close()
	if rate, err = far.rates(ctx, 1, s.download()); err != nil {
		return rows, err
	}
	return append(rows, row{Part: part, Name: "download at a round trip of 50 ms", Value: rate, Unit: "MB/s"}.least(floorPortsFar)), nil
}

// devServer is a server in a lent terminal, one of whose ports is lent, too.
type devServer struct {
	*rig
	page string // URL at the host
}

// newDevServer starts daemon, host and server. Between daemon and host a round trip takes
// at least that long.
func newDevServer(ctx context.Context, s settings, away time.Duration) (*devServer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := s.programs
	p.host = []string{self, childArg, "ports-host", "-"}
	r, direct, err := newFarRig(ctx, p, away)
	if err != nil {
		return nil, err
	}
	d := &devServer{rig: r}
	if err := d.lend(ctx, self, direct); err != nil {
		r.close()
		return nil, r.said.explain(err)
	}
	return d, nil
}

// lend starts the server and lends its port.
func (d *devServer) lend(ctx context.Context, self, direct string) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	at := filepath.Join(d.home, "port")
	id, uri, err := d.start(ctx, self, childArg, "page", at)
	if err != nil {
		return err
	}
	port, err := poll(ctx, func() (string, error) {
		text, err := os.ReadFile(at)
		if err != nil || !strings.HasSuffix(string(text), "\n") {
			return "", errNotYet
		}
		return strings.TrimSpace(string(text)), nil
	})
	if err != nil {
		return err
	}
	if _, err := d.door.Lend(ctx, id, localapi.LendRequest{Ports: []string{port}}); err != nil {
		return err
	}
	d.page = strings.Replace(direct, "ws://", "http://", 1) + portDoor + "?" + url.Values{"uri": {uri}, "port": {port}}.Encode() + "&mb="
	_, err = poll(ctx, func() (struct{}, error) {
		_, err := d.get(ctx, 0)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errNotYet, err)
		}
		return struct{}{}, err
	})
	return err
}

// get downloads that many MB and returns how many bytes came.
func (d *devServer) get(ctx context.Context, mb int) (int64, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.page+strconv.Itoa(mb), nil)
	if err != nil {
		return 0, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	n, err := io.Copy(io.Discard, a.Body)
	if err == nil && (a.StatusCode != http.StatusOK || n != int64(mb)*1e6) {
		err = fmt.Errorf("the port answered %s with %d bytes, want %d MB", a.Status, n, mb)
	}
	return n, err
}

// rates returns the median rate of downloads of mb MB, in MB/s.
func (d *devServer) rates(ctx context.Context, rounds, mb int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var all []float64
	for range rounds {
		began := time.Now()
		if _, err := d.get(ctx, mb); err != nil {
			return 0, err
		}
		all = append(all, float64(mb)/time.Since(began).Seconds())
	}
	return median(all), nil
}

// echoes types at a lent terminal, without and beside downloads in turn, and returns how
// long the echoes took until the observer had them, in ms, and the rate of the downloads
// in MB/s.
func (d *devServer) echoes(ctx context.Context, keys, mb int) (alone, beside []float64, rate float64, err error) {
	id, uri, err := d.start(ctx, echoing...)
	if err != nil {
		return nil, nil, 0, err
	}
	k, err := newKeyboard(ctx, d.rig, id, uri)
	if err != nil {
		return nil, nil, 0, err
	}
	defer k.close()
	turn := func(all []float64) ([]float64, error) {
		for n := range keysInTurn {
			_, far, err := k.press(ctx, key(n))
			if err != nil {
				return all, err
			}
			all = append(all, millis(far))
		}
		return all, nil
	}
	var came atomic.Int64
	var took time.Duration
	for len(beside) < keys {
		if alone, err = turn(alone); err != nil {
			return nil, nil, 0, err
		}
		loading, stop := context.WithCancel(ctx)
		ended := make(chan struct{}) // closed after the last download
		began := time.Now()
		go func() {
			defer close(ended)
			for loading.Err() == nil {
				n, _ := d.get(loading, mb) // cut at the end of the turn
				came.Add(n)
			}
		}()
		beside, err = turn(beside)
		stop()
		<-ended
		took += time.Since(began)
		if err != nil {
			return nil, nil, 0, err
		}
	}
	if came.Load() == 0 {
		return nil, nil, 0, errors.New("nothing was downloaded meanwhile")
	}
	return alone, beside, float64(came.Load()) / 1e6 / took.Seconds(), nil
}

// servePages is a dev server: it writes its port to a file, and answers with as many MB
// as it is asked for.
func servePages(file string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, fmt.Appendln(nil, l.Addr().(*net.TCPAddr).Port), 0o600); err != nil {
		return err
	}
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mb, _ := strconv.Atoi(r.URL.Query().Get("mb"))
		w.Header().Set("Content-Type", "application/octet-stream")
		block := make([]byte, 100_000)
		for range mb * 10 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
}

// portDoor is the path at which the host of this part passes requests on to lent ports.
const portDoor = "/bench/port"

// passToPort answers a request with the answer of a lent port.
func passToPort(h *host.Host, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	port, _ := strconv.Atoi(q.Get("port"))
	way, err := h.Ports().Way(rights.Principal{Role: rights.RoleAdmin}, q.Get("uri"), port)
	var a *http.Response
	if err == nil {
		out := r.Clone(r.Context())
		out.RequestURI, out.URL = "", &url.URL{Scheme: "http", Host: "port", Path: "/", RawQuery: "mb=" + q.Get("mb")}
		a, err = way.RoundTrip(out)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer a.Body.Close()
	w.WriteHeader(a.StatusCode)
	_, _ = io.Copy(w, a.Body) // the client counts
}

// newFarRig is newRig with a way between daemon and host on which a round trip takes that
// long. It returns the host's URL without the way, too.
func newFarRig(ctx context.Context, p programs, away time.Duration) (r *rig, direct string, err error) {
	r, err = newRigBy(ctx, p, "", func(at *client.Endpoint) error {
		direct = at.URL
		if away == 0 {
			return nil
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { l.Close() })
		to := strings.TrimPrefix(strings.TrimSuffix(direct, "/"), "ws://")
		go delay(l, to, away/2)
		at.URL = "ws://" + l.Addr().String()
		return nil
	})
	return r, direct, err
}

// delay passes connections on, each byte later by d, until the bench ends.
func delay(l net.Listener, to string, d time.Duration) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			from.Close()
			continue
		}
		go passLater(far, from, d)
		go passLater(from, far, d)
	}
}

// passLater copies from one connection to the other, each byte later by d.
func passLater(to, from net.Conn, d time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1<<10) // of at most 32 KiB; closed after the last one
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			pieces <- piece{data[:n], time.Now().Add(d)}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	for range pieces { // let the reader end
	}
}
