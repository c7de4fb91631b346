package policy_test

import (
	"path/filepath"
	"testing"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/internal/testkit/must"
)

func BenchmarkCheck(b *testing.B) {
	e := must.Get(policy.New(policy.Options{}))(b)
	for name, line := range map[string]string{
		"short": "npm test",
		"usual": `cd web && CI=1 npm ci && npm run build 2>&1 | tee build.log && git status --short`,
		"deep":  `timeout 60 env A=1 bash -c 'for f in *.go; do find "$f" -exec sh -c "gofmt -l {}" \; ; done'`,
	} {
		b.Run(name, func(b *testing.B) {
			r := policy.Request{Door: policy.DoorACP, Actor: agent, Line: line, Cwd: "/src"}
			for b.Loop() {
				e.Check(r)
			}
		})
	}
}

// BenchmarkAdmit is a whole decision with its line in the log.
func BenchmarkAdmit(b *testing.B) {
	o := policy.Options{Config: config.Default().Policy, AuditPath: filepath.Join(b.TempDir(), "audit.jsonl")}
	o.Config.Limits.SpawnsPerMinute = 1 << 30
	e := must.Get(policy.New(o))(b)
	defer e.Close()
	for b.Loop() {
		must.Get(e.Admit(b.Context(), harmless()))(b)
	}
}
