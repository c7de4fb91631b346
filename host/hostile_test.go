package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/jsonrpc/wsconn"
)

// Of many machines that come with one clientId at once, one has it, for good.
func TestOneClientIDForMany(t *testing.T) {
	testkit.Leaks(t)
	const many = 20
	var tokens []string
	for i := range many {
		tokens = append(tokens, fmt.Sprint("machine-m", i))
	}
	owners := &memory{of: map[string]string{}}
	_, url := serve(t, host.Options{Access: newUsers(tokens...), Owners: owners})
	lends := make([]error, many)
	viewers := make([]*viewer, many)
	for i := range many {
		viewers[i] = as(t, url, tokens[i], "laptop", viewOptions{noInit: true})
	}
	var all sync.WaitGroup
	for i, v := range viewers {
		all.Go(func() {
			p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "laptop", Meta: ahp.NewClientMeta()}
			if lends[i] = v.call(ahp.MethodInitialize, p, nil); lends[i] == nil {
				lends[i] = v.call(ahp.MethodCreateTerminal, clientTerminal(uri, "laptop"), nil)
			}
		})
	}
	all.Wait()
	winners := 0
	for i, err := range lends {
		switch code(err) {
		case 0:
			winners++
			if owner, _ := owners.Owner("laptop"); owner != fmt.Sprint("m", i) {
				t.Errorf("m%d lends as the laptop, which belongs to %q", i, owner)
			}
		case int64(ahp.CodePermissionDenied):
		default:
			t.Errorf("m%d: %v", i, err)
		}
	}
	if winners != 1 {
		t.Errorf("%d machines lend as the laptop", winners)
	}
}

// Guesses from many connections at once are limited like those from one, and the record
// has the place of each that was checked, but not the guess.
func TestGuessingFromMany(t *testing.T) {
	testkit.Leaks(t)
	var mu sync.Mutex
	var refused []rights.AuditEvent
	_, url := serve(t, host.Options{Access: newUsers("observer-o"), Audit: func(ev rights.AuditEvent) {
		mu.Lock()
		defer mu.Unlock()
		if ev.Type == rights.AuditRefused {
			refused = append(refused, ev)
		}
	}})
	held := as(t, url, "observer-o", "o", viewOptions{})
	const many = 200
	statuses := make([]int, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			_, err := wsconn.Dial(t.Context(), fmt.Sprint(url, "?tkn=guess-", i), wsconn.Options{})
			if e, ok := errors.AsType[*wsconn.DialError](err); ok {
				statuses[i] = e.Status
			}
		})
	}
	all.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	wrong, limited := count[http.StatusForbidden], count[http.StatusTooManyRequests]
	if wrong+limited != many || wrong < 10 || limited == 0 {
		t.Errorf("%d were looked at and %d were not, of %d: %v", wrong, limited, many, count)
	}
	held.ping() // present clients notice nothing
	mu.Lock()
	defer mu.Unlock()
	if len(refused) < wrong {
		t.Errorf("%d entries in the record for %d wrong tokens", len(refused), wrong)
	}
	for _, ev := range refused {
		if ev.Remote == "" || strings.Contains(fmt.Sprint(ev), "guess-") {
			t.Errorf("the record has %+v", ev)
		}
	}
}

// Machines' names for themselves and their terminals are plain wherever they are shown,
// from any client and after any change.
func TestNamesArePlainEverywhere(t *testing.T) {
	testkit.Leaks(t)
	const evil = "a\x1b]0;b\a\u009b2J\u202ec\x00\r\n<script>\u2066d"
	h, url := serve(t, host.Options{Access: newUsers("observer-o"), Token: secret})
	var all sync.WaitGroup
	const many = 10
	for i := range many {
		all.Go(func() {
			id := fmt.Sprint("m", i)
			v := as(t, url, secret, id, viewOptions{noInit: true})
			p := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: id, Meta: ahp.NewClientMeta(),
				ClientInfo: &ahp.Implementation{Name: evil, Title: evil}}
			if err := v.call(ahp.MethodInitialize, p, nil); err != nil {
				t.Error(err)
				return
			}
			create := clientTerminal("ahp-terminal:/"+id, id)
			create.Name, create.Cwd = evil, ""
			if err := v.call(ahp.MethodCreateTerminal, create, nil); err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				v.dispatch("ahp-terminal:/"+id, ahp.TerminalTitleChanged{Title: evil})
			}
			v.ping()
		})
	}
	all.Wait()
	o := as(t, url, "observer-o", "o", viewOptions{subs: []string{ahp.RootURI, "ahp-terminal:/m0"}})
	shown := []string{o.state("ahp-terminal:/m0").Title}
	for _, one := range o.catalogue().Terminals {
		shown = append(shown, one.Title)
	}
	for _, one := range host.Catalogue(h).List() {
		shown = append(shown, one.Name, one.Title, one.Machine)
	}
	if len(shown) < 4*many {
		t.Errorf("only %d names are shown: %q", len(shown), shown)
	}
	for _, s := range shown {
		if bad := strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == 0x202E || r == 0x2066 }); bad >= 0 {
			t.Errorf("%q is shown", s)
		}
	}
	_, page := ask(t, url, visit{path: "/plain", token: "observer-o"})
	if strings.ContainsAny(page, "\x00\x1b\a\u009b\u202e\u2066") || strings.Contains(page, "<script>") || strings.Count(page, "&lt;script&gt;") < many {
		t.Errorf("the plain page is\n%s", page)
	}
}

// Machines that send wrong offsets in any way harm only their own terminals: the host
// keeps the text that it reports.
func TestLiesAboutOffsets(t *testing.T) {
	testkit.Leaks(t)
	const many, steps = 8, 300
	_, url := serve(t, host.Options{})
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() { lie(t, url, i, steps) })
	}
	all.Wait()
}

// lie dispatches output at offsets that continue, overlap, leave a gap or are invalid,
// and keeps the text that the host should have.
func lie(t *testing.T, url string, me, steps int) {
	random := rand.New(rand.NewPCG(uint64(me), 11))
	uri := fmt.Sprint("ahp-terminal:/liar-", me)
	v := dial(t, url, fmt.Sprint("liar-", me), viewOptions{resume: true})
	v.create(uri)
	applied, missing, text := int64(0), int64(0), ""
	for step := range steps {
		data := strings.Repeat(fmt.Sprint(step%10), 1+random.IntN(50))
		offset := applied
		switch random.IntN(6) {
		case 0:
			offset = max(0, applied-random.Int64N(100))
		case 1:
			offset = applied + random.Int64N(1<<40)
		case 2:
			offset = 0
		case 3:
			offset = 1<<53 - 1 // out of range with the text
		}
		v.output(uri, data, offset)
		size := int64(len(data))
		if max(offset, applied) > 1<<53-size {
			continue
		}
		if gap := offset - applied; gap > 0 {
			missing += gap
			applied = offset
			text += fmt.Sprintf("\r\n[tether: %d bytes of output are missing here]\r\n", gap)
		}
		if overlap := applied - offset; overlap < size {
			text += data[overlap:]
			applied = offset + size
		}
	}
	v.await("the acknowledgement", func() bool { return v.acks[uri] == applied })
	o := dial(t, url, fmt.Sprint("looker-", me), viewOptions{subs: []string{uri}})
	if st := o.state(uri); st.Text() != text || st.Meta.Missing != missing {
		t.Errorf("machine %d: the host has %d bytes and %d are missing, want %d and %d", me, len(st.Text()), st.Meta.Missing, len(text), missing)
	}
}
