package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/shell"
)

// judged starts a server with a policy of its own.
func judged(t *testing.T, change func(*config.Policy)) (*world, *policy.Engine) {
	t.Helper()
	c := config.Default().Policy
	c.AskTimeout = config.Duration(time.Hour)
	if change != nil {
		change(&c)
	}
	e := must.Get(policy.New(policy.Options{Config: c}))(t)
	return serve(t, local.Options{Policy: e}, term.Options{}), e
}

// code is that of the door's error, "" for none.
func code(err error) localapi.Code {
	var e *localapi.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return localapi.Code(err.Error())
	}
	return ""
}

// ask starts a request that needs a question, and returns the question and a channel for
// the outcome.
func (w *world) ask(as string, r localapi.SpawnRequest) (localapi.Approval, <-chan error) {
	w.t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := w.client.As(as).Spawn(context.Background(), r)
		done <- err
	}()
	var found localapi.Approval
	testkit.Eventually(w.t, patience, "a question", func() bool {
		all, err := w.client.Approvals(w.t.Context(), nil)
		for _, x := range all.Approvals {
			if x.State == localapi.ApprovalWaiting {
				found = x
			}
		}
		return err == nil && found.ID != ""
	})
	return found, done
}

var codeRequest = localapi.SpawnRequest{Command: []string{"python3", "-c", "1"}, Cwd: testkit.Abs("/"), SetEnv: []string{"CI=secret"}}

func TestApprove(t *testing.T) {
	for _, c := range []struct {
		name  string
		allow bool
		long  time.Duration
		want  localapi.Code
	}{
		{"once", true, 0, ""}, {"for a while", true, time.Hour, ""}, {"no", false, 0, localapi.CodeDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := judged(t, nil)
			q, done := w.ask("bob", codeRequest)
			if q.Actor != "agent bob" || q.Rule != "builtin.code" || strings.Join(q.Argv, " ") != "python3 -c 1" || len(q.Env) != 1 || q.Env[0] != "CI" {
				t.Errorf("the question is %+v", q)
			}
			if l, err := w.client.List(t.Context()); err != nil || l.Waiting != 1 {
				t.Errorf("a list says that %d wait, %v", l.Waiting, err)
			}
			if s, err := w.client.Status(t.Context()); err != nil || s.Waiting != 1 {
				t.Errorf("status says that %d wait, %v", s.Waiting, err)
			}
			if l, err := w.client.As("other").List(t.Context()); err != nil || l.Waiting != 0 {
				t.Errorf("another agent hears that %d wait, %v", l.Waiting, err)
			}
			done2, err := w.client.Approve(t.Context(), q.ID, c.allow, c.long)
			if err != nil || (done2.Grant != nil) != (c.long > 0) {
				t.Fatalf("%+v, %v", done2, err)
			}
			if err := <-done; code(err) != c.want {
				t.Errorf("the agent is told %v, want %q", err, c.want)
			}
			if _, err := w.client.Approve(t.Context(), q.ID, c.allow, c.long); code(err) != localapi.CodeNotFound {
				t.Errorf("a second answer: %v", err)
			}
			if done2.Grant == nil {
				return
			}
			if _, err := w.client.As("bob").Spawn(t.Context(), codeRequest); err != nil {
				t.Errorf("the same again: %v", err)
			}
			check.OK(t, w.client.Revoke(t.Context(), done2.Grant.ID))
			if err := w.client.Revoke(t.Context(), done2.Grant.ID); code(err) != localapi.CodeNotFound {
				t.Errorf("revoked twice: %v", err)
			}
		})
	}
}

// Approvals are the person's alone.
func TestAgentsDoNotAnswer(t *testing.T) {
	w, _ := judged(t, nil)
	q, done := w.ask("bob", codeRequest)
	bob := w.client.As("bob")
	if _, err := bob.Approvals(t.Context(), nil); code(err) != localapi.CodeDenied {
		t.Errorf("list: %v", err)
	}
	if _, err := bob.Approve(t.Context(), q.ID, true, 0); code(err) != localapi.CodeDenied {
		t.Errorf("approve: %v", err)
	}
	if err := bob.Revoke(t.Context(), q.ID); code(err) != localapi.CodeDenied {
		t.Errorf("revoke: %v", err)
	}
	if _, err := bob.AuditHead(t.Context()); code(err) != localapi.CodeDenied {
		t.Errorf("audit head: %v", err)
	}
	if _, err := w.client.Approve(t.Context(), q.ID, false, 0); err != nil {
		t.Error(err)
	}
	<-done
}

func TestBadAnswers(t *testing.T) {
	w, _ := judged(t, nil)
	q, done := w.ask("bob", codeRequest)
	for _, c := range []struct{ name, method, path, body, want string }{
		{"no JSON", "POST", q.ID, "x", "bad_request"},
		{"unknown field", "POST", q.ID, `{"allow":true,"until":1}`, "bad_request"},
		{"wrong type", "POST", q.ID, `{"allow":"yes"}`, "bad_request"},
		{"too long", "POST", q.ID, `{"allow":true,"for_seconds":99999999}`, "bad_request"},
		{"negative", "POST", q.ID, `{"allow":true,"for_seconds":-1}`, "bad_request"},
		{"overflow", "POST", q.ID, `{"allow":true,"for_seconds":9223372036854775807}`, "bad_request"},
		{"unknown id", "POST", "q-nothere", `{"allow":true}`, "not_found"},
		{"a question is no grant", "DELETE", q.ID, ``, "not_found"},
		{"since is no number", "GET", "?since=x", ``, "bad_request"},
	} {
		path := "/v1/approvals/" + c.path
		if strings.HasPrefix(c.path, "?") {
			path = "/v1/approvals" + c.path
		}
		_, answer := w.request(c.method, path, c.body)
		if !strings.Contains(answer, `"code":"`+c.want+`"`) {
			t.Errorf("%s: %s, want %s", c.name, answer, c.want)
		}
	}
	if _, err := w.client.Approve(t.Context(), q.ID, false, 0); err != nil {
		t.Error(err)
	}
	if err := <-done; code(err) != localapi.CodeDenied {
		t.Errorf("the agent is told %v", err)
	}
}

// request sends a bare request and returns the answer.
func (w *world) request(method, path, body string) (status int, answer string) {
	w.t.Helper()
	conn := w.dial()
	req := must.Get(http.NewRequest(method, "http://"+localapi.Host+path, strings.NewReader(body)))(w.t)
	req.Close = true
	req.Header.Set("Content-Type", "application/json")
	must.Do(w.t, req.Write(conn))
	data := make([]byte, 0, 4096)
	for buf := make([]byte, 4096); ; {
		n, err := conn.Read(buf)
		data = append(data, buf[:n]...)
		if err != nil {
			return 0, string(data)
		}
	}
}

// A list can be waited for.
func TestApprovalsLongPoll(t *testing.T) {
	w, _ := judged(t, nil)
	first := must.Get(w.client.Approvals(t.Context(), nil))(t)
	changed := make(chan localapi.ApprovalList, 1)
	go func() {
		l, err := w.client.Approvals(context.Background(), &first.Version)
		check.OK(t, err)
		changed <- l
	}()
	q, done := w.ask("bob", codeRequest)
	l := <-changed
	if len(l.Approvals) != 1 || l.Approvals[0].ID != q.ID {
		t.Errorf("after the change: %+v", l)
	}
	if _, err := w.client.Approve(t.Context(), q.ID, false, 0); err != nil {
		t.Error(err)
	}
	<-done
}

// Who asked and is gone leaves no question behind.
func TestAskerGoes(t *testing.T) {
	w, e := judged(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := w.client.As("bob").Spawn(ctx, codeRequest)
		done <- err
	}()
	testkit.Eventually(t, patience, "a question", func() bool { return e.Waiting(term.User) == 1 })
	cancel()
	<-done
	testkit.Eventually(t, patience, "that it is withdrawn", func() bool { return e.Waiting(term.User) == 0 })
}

// A daemon that ends does not wait for answers.
func TestDrainEndsQuestions(t *testing.T) {
	w, _ := judged(t, nil)
	_, done := w.ask("bob", codeRequest)
	w.server.Drain()
	if err := <-done; code(err) != localapi.CodeClosing {
		t.Errorf("the agent is told %v", err)
	}
}

func TestPolicyAtTheSocket(t *testing.T) {
	w, e := judged(t, func(c *config.Policy) { c.Limits.CommandsPerMinute = 3 })
	bob := w.client.As("bob")
	for _, c := range []struct {
		name   string
		client *localclient.Client
		r      localapi.SpawnRequest
		want   localapi.Code
	}{
		{"blocked", bob, localapi.SpawnRequest{Command: []string{"rm", "x"}, Cwd: testkit.Abs("/")}, localapi.CodeDenied},
		{"the person may", w.client, localapi.SpawnRequest{Command: []string{"rm", "x"}, Cwd: testkit.Abs("/")}, ""},
		{"first", bob, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}, ""},
		{"second", bob, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}, ""},
		{"third", bob, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}, ""},
		{"fourth", bob, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}, localapi.CodeLimit},
		{"acp, first", bob, localapi.SpawnRequest{Command: []string{"x", "$(y)"}, Cwd: testkit.Abs("/"), Door: "acp"}, ""},
		{"acp, second", bob, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Door: "acp"}, ""},
		{"acp, approved in the editor", bob, localapi.SpawnRequest{Command: []string{"rm", "x"}, Cwd: testkit.Abs("/"), Door: "acp", Approved: "editor"}, ""},
		{"acp, fourth", bob, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Door: "acp"}, localapi.CodeLimit},
		{"another door", bob, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Door: "mcp"}, localapi.CodeBadRequest},
	} {
		if _, err := c.client.Spawn(t.Context(), c.r); code(err) != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	var spawned int
	for _, r := range e.Recent() {
		if r.Event == policy.EventSpawn {
			spawned++
		}
	}
	if spawned != 7 {
		t.Errorf("the log has %d spawns, want 7", spawned)
	}
}

// The agent's changes of its environment count, not a login's variables.
func TestChangedEnvironment(t *testing.T) {
	w, _ := judged(t, func(c *config.Policy) {
		c.Builtin.Environment, c.Limits.SpawnsPerMinute, c.Limits.Background = "deny", 100, 100
	})
	bob := w.client.As("bob")
	for _, c := range []struct {
		env  []string
		want localapi.Code
	}{
		{[]string{"A=1"}, ""}, // as at a login, see fakeDaemon
		{[]string{"A=1", "B=2"}, ""},
		{[]string{"A=1", "LD_PRELOAD=x"}, localapi.CodeDenied},
		{[]string{"A=1", "SHELL=" + shell.Login()}, ""}, // Kimi Code sets it for every command
		{[]string{"A=1", "SHELL=" + testkit.Abs("/tmp/evil")}, localapi.CodeDenied},
		{[]string{"A=1", "SHELL=" + shell.Login(), "SHELL=" + testkit.Abs("/tmp/evil")}, localapi.CodeDenied},
		{[]string{"A=1", "SHELL=bash"}, localapi.CodeDenied},
	} {
		for _, r := range []localapi.SpawnRequest{{Env: c.env}, {Env: []string{"A=1"}, SetEnv: c.env[1:]}} {
			r.Command, r.Cwd = []string{"x"}, testkit.Abs("/")
			if _, err := bob.Spawn(t.Context(), r); code(err) != c.want {
				t.Errorf("%q: %v, want %q", c.env, err, c.want)
			}
		}
	}
}

func TestConfine(t *testing.T) {
	var confined []term.Actor
	w := serveConfined(t, local.Options{}, term.Options{}, func(a term.Actor, s *term.Spec) error {
		confined = append(confined, a)
		if s.Command[0] == "no" {
			return &localapi.Error{Code: localapi.CodeCannotStart, Message: "no sandbox"}
		}
		return nil
	})
	if _, err := w.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"no"}, Cwd: testkit.Abs("/")}); err != nil {
		t.Errorf("the person: %v", err)
	}
	if _, err := w.client.As("bob").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"no"}, Cwd: testkit.Abs("/")}); code(err) != localapi.CodeCannotStart {
		t.Errorf("bob: %v", err)
	}
	if len(confined) != 1 || confined[0] != term.Agent("bob") {
		t.Errorf("confined %v", confined)
	}
}

// At each door a question shows the script that would run, and a script that has changed
// before the start needs a new answer. The values of variables that decide which code
// runs are shown, too.
func TestScriptsAreBoundAtEachDoor(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	for door, begin := range map[string]func(*world, string) error{
		policy.DoorMCP: func(w *world, dir string) error {
			text, failed := w.agent("bob").call("spawn_background_terminal", args{"cwd": dir, "command": []string{"sh", "x.sh"}})
			if failed {
				return errors.New(text)
			}
			return nil
		},
		policy.DoorACP: func(w *world, dir string) error {
			_, err := w.client.As("bob").Spawn(context.Background(), localapi.SpawnRequest{Door: policy.DoorACP, Command: []string{"sh", "x.sh"}, Cwd: dir, SetEnv: []string{"GIT_SSH_COMMAND=ssh -i x"}})
			return err
		},
		policy.DoorAHP: func(w *world, dir string) error {
			s := w.server.ToolsAt("lab", "s1", "ci")
			defer s.Close()
			_, err := s.Call(context.Background(), "spawn_background_terminal", json.RawMessage(`{"cwd":`+strconv.Quote(dir)+`,"command":["sh","x.sh"]}`), agenttools.Caller{})
			return err
		},
	} {
		t.Run(door, func(t *testing.T) {
			w, _ := judged(t, func(p *config.Policy) { p.Builtin.ACP = append(p.Builtin.ACP, "script=ask") })
			dir := t.TempDir()
			script := filepath.Join(dir, "x.sh")
			write := func(text string) {
				t.Helper()
				must.Do(t, os.WriteFile(script, []byte(text), 0o600))
			}
			write("true")
			done := make(chan error, 1)
			go func() { done <- begin(w, dir) }()
			last := ""
			for _, edit := range []bool{true, false} {
				var q localapi.Approval
				testkit.Eventually(t, patience, "a question", func() bool {
					all, err := w.client.Approvals(t.Context(), nil)
					if err == nil && len(all.Approvals) == 1 {
						q = all.Approvals[0]
					}
					return q.ID != "" && q.ID != last
				})
				if last = q.ID; q.Door != door || len(q.Scripts) != 1 || q.Scripts[0].Path != script || q.Scripts[0].Sum == "" {
					t.Errorf("the question is %+v", q)
				}
				if want := map[string]string{policy.DoorAHP: `agent "ci" at lab`}[door]; q.Who != want || want != "" && (q.Actor != "agent lab/s1" || !strings.HasPrefix(q.Summary, want)) {
					t.Errorf("it is asked by %q, %q: %s", q.Who, q.Actor, q.Summary)
				}
				if want := map[string]string{policy.DoorACP: "GIT_SSH_COMMAND=ssh -i x"}[door]; strings.Join(q.Settings, ",") != want {
					t.Errorf("its settings are %q, want %q", q.Settings, want)
				}
				if edit {
					write("evil")
				}
				if len(w.children) > 0 {
					t.Error("it was started")
				}
				must.Get(w.client.Approve(t.Context(), q.ID, true, 0))(t)
			}
			check.OK(t, <-done)
			<-w.children
		})
	}
}
