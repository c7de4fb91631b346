package access_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

// loggedIn is a login by a token.
func loggedIn(cookie, token, name string, d time.Duration) rights.Login {
	return rights.Login{Cookie: sha256.Sum256([]byte(cookie)), Token: sha256.Sum256([]byte(token)), Principal: rights.Principal{Name: name}, Until: time.Now().Add(d), Proof: rights.ProofNow}
}

// names are whose logins are kept.
func names(l *access.Logins) string {
	var all []string
	for _, k := range l.Kept() {
		if k.Proof != rights.ProofNow {
			all = append(all, "without its proof:")
		}
		all = append(all, fmt.Sprintf("%s/%s", k.Principal.Name, k.Principal.Role))
	}
	return strings.Join(all, " ")
}

func TestLoginsOutliveTheHostAndNotTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokenFile, clients := paths(t)
		file := filepath.Join(filepath.Dir(clients), "logins.json")
		const own = "the host's own token"
		tokens := open(t, tokenFile)
		ann, _ := create(t, tokens, "ann", rights.RoleObserver, 0)
		bob, _ := create(t, tokens, "bob", rights.RoleObserver, time.Hour)
		eve, _ := create(t, tokens, "eve", rights.RoleObserver, 0)
		// begin is a host that is started.
		begin := func(own string) *access.Logins {
			return access.OpenLogins(access.File(file), open(t, tokenFile), own, func(err error) { t.Error(err) })
		}
		l := begin(own)
		for _, one := range []rights.Login{loggedIn("1", ann, "ann", 12*time.Hour), loggedIn("2", own, "", 12*time.Hour), loggedIn("3", bob, "bob", 12*time.Hour),
			loggedIn("4", eve, "eve", 12*time.Hour), loggedIn("5", ann, "ann", 12*time.Hour), loggedIn("6", "of another run", "", 12*time.Hour),
			loggedIn("7", "revoked", "ann", 12*time.Hour), loggedIn("8", bob, "ann", 12*time.Hour)} {
			must.Do(t, l.Keep(one))
		}
		if err := l.Drop(sha256.Sum256([]byte("5"))); err != nil { // logged out
			t.Fatal(err)
		}
		must.Get(tokens.Revoke("eve"))(t)
		for _, step := range []struct {
			own, want string
		}{{own, "ann/observer /admin bob/observer"}, {"another", "ann/observer bob/observer"}, {"", "ann/observer bob/observer"}} {
			if got := names(begin(step.own)); got != step.want {
				t.Errorf("with the own token %q: %q, want %q", step.own, got, step.want)
			}
		}
		if data, err := secret.ReadFile(file); err != nil || strings.Contains(string(data), "eve") {
			t.Errorf("what was revoked while no host ran is in the file: %s, %v", data, err)
		}
		l = begin(own)
		if err := l.Keep(loggedIn("2", own, "", 12*time.Hour)); err != nil { // another own token has ended it
			t.Fatal(err)
		}
		for _, k := range l.Kept() {
			if k.Principal.Name == "bob" {
				time.Sleep(time.Hour)
				synctest.Wait()
				if k.Principal.Live.Err() == nil {
					t.Error("what a login has opened outlives its token")
				}
			}
		}
		if got := names(begin(own)); got != "ann/observer /admin" {
			t.Errorf("after an hour: %q", got)
		}
		time.Sleep(11 * time.Hour)
		if got := names(begin(own)); got != "" {
			t.Errorf("after twelve hours: %q", got)
		}
		l = begin(own)
		must.Do(t, l.Drop(sha256.Sum256([]byte("1"))))
		data, err := secret.ReadFile(file)
		if err != nil || strings.Contains(string(data), "cookie") {
			t.Errorf("what is over is still in the file: %s, %v", data, err)
		}
	})
}

func base64JSON(b []byte) string { data, _ := json.Marshal(b); return string(data) }

func TestLoginsAreBounded(t *testing.T) {
	tokenFile, clients := paths(t)
	file := filepath.Join(filepath.Dir(clients), "logins.json")
	tokens := open(t, tokenFile)
	ann, _ := create(t, tokens, strings.Repeat("a", 64), rights.RoleObserver, 0)
	// As many as are allowed, and one more; written at once, since each costs a write to
	// the disk.
	one := loggedIn("", ann, strings.Repeat("a", 64), 12*time.Hour)
	var all []string
	for i := range 2048 {
		cookie := sha256.Sum256(fmt.Append(nil, i))
		all = append(all, fmt.Sprintf(`{"cookie_sha256":%s,"token_sha256":%s,"principal":%q,"until":%q}`, base64JSON(cookie[:]), base64JSON(one.Token[:]),
			one.Principal.Name, one.Until.UTC().Format(time.RFC3339Nano)))
	}
	must.Do(t, secret.WriteFile(file, []byte(`{"version":1,"logins":[`+strings.Join(all, ",")+"]}")))
	l := access.OpenLogins(access.File(file), open(t, tokenFile), "", func(err error) { t.Error(err) })
	must.Do(t, l.Keep(one))
	kept := access.OpenLogins(access.File(file), open(t, tokenFile), "", func(err error) { t.Error(err) }).Kept()
	if len(kept) != 2048 || kept[2047].Cookie != one.Cookie || kept[0].Cookie != sha256.Sum256([]byte("1")) {
		t.Errorf("%d logins are kept, want the newest 2048", len(kept))
	}
}

func TestALoginsFileThatCannotBeUsed(t *testing.T) {
	for name, content := range map[string]string{"no JSON": "{", "another version": `{"version":9}`, "an entry that is none": `{"version":1,"logins":[{"principal":"ann"}]}`, "too large": strings.Repeat(" ", 1<<20+1)} {
		t.Run(name, func(t *testing.T) {
			tokenFile, clients := paths(t)
			file := filepath.Join(filepath.Dir(clients), "logins.json")
			tokens := open(t, tokenFile)
			ann, _ := create(t, tokens, "ann", rights.RoleObserver, 0)
			must.Do(t, secret.WriteFile(file, []byte(content)))
			var said []string
			l := access.OpenLogins(access.File(file), open(t, tokenFile), "", func(err error) { said = append(said, err.Error()) })
			if got := names(l); got != "" || len(said) != 1 || !strings.Contains(said[0], "put aside as "+file+".damaged") {
				t.Errorf("it keeps %q and says %q", got, said)
			}
			if data, err := os.ReadFile(file + ".damaged"); err != nil || string(data) != content {
				t.Errorf("put aside: %.80s, %v", data, err)
			}
			must.Do(t, l.Keep(loggedIn("1", ann, "ann", time.Hour)))
			if got := names(l); got != "ann/observer" || len(said) != 1 {
				t.Errorf("then it keeps %q and says %q", got, said)
			}
		})
	}
}
