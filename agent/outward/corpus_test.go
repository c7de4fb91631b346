package outward_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"tether/agent/outward"
)

// Letters that tokens are made of here. Nobody has any of them: they only have the shape that their makers document, and are put together
// when the test runs, so that no scanner of sources takes them for real.
const (
	hex40  = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
	hex64  = hex40 + "2b0b822cd15d6c15b0f00a08"
	mixed  = "Zk4vQ9xLr2TmYb7HcWs1NpGd8JfUa3KeXi5RoVt6BqMzSy0DhPlCwEgFnAjIuO" // 62, none twice
	upper  = "Q7ZK4M2XV3RT5BYC6HLW"
	dashed = "Zk4vQ9x-Lr2TmYb_7HcWs1NpGd8JfUa-3KeXi5RoVt6Bq_MzSy0DhPlCwEg"
)

// corpus is one token of each form, as its maker documents it: prefix, and what is secret of it.
var corpus = []struct{ name, open, secret string }{
	{"AWS access key", "AKIA", upper[:16]},
	{"AWS temporary key", "ASIA", upper[:16]},
	{"GitHub, personal", "ghp_", mixed[:36]},
	{"GitHub, OAuth", "gho_", mixed[:36]},
	{"GitHub, user to server", "ghu_", mixed[:36]},
	{"GitHub, server to server", "ghs_", mixed[:36]},
	{"GitHub, refresh", "ghr_", mixed[:36]},
	{"GitHub, fine-grained", "github_pat_", mixed[:22] + "_" + mixed[:59]},
	{"GitLab, personal", "glpat-", dashed[:20]},
	{"GitLab, routable", "glpat-", dashed[:27] + ".01.0j1a2b3c4"},
	{"GitLab, runner", "glrt-", dashed[:20]},
	{"GitLab, deploy", "gldt-", dashed[:20]},
	{"GitLab, trigger", "glptt-", hex40},
	{"Slack, bot", "xoxb-", "123456789012-1234567890123-" + mixed[:24]},
	{"Slack, user", "xoxp-", "123456789012-123456789012-1234567890123-" + hex64[:32]},
	{"Slack, app", "xapp-", "1-A0123456789-1234567890123-" + hex64},
	{"Stripe, secret", "sk_live_", mixed[:24]},
	{"Stripe, long", "sk_live_", mixed[:51] + mixed[:48]},
	{"Stripe, restricted", "rk_live_", mixed[:24]},
	{"Stripe, test", "sk_test_", mixed[:24]},
	{"Stripe, webhook", "whsec_", mixed[:32]},
	{"OpenAI, old", "sk-", mixed[:20] + "T3BlbkFJ" + mixed[30:50]},
	{"OpenAI, project", "sk-proj-", dashed + "T3BlbkFJ" + dashed},
	{"OpenAI, service", "sk-svcacct-", dashed + "T3BlbkFJ" + dashed},
	{"Anthropic", "sk-ant-api03-", dashed[:50] + dashed[:43] + "AA"},
	{"OpenRouter", "sk-or-v1-", hex64},
	{"Google API", "AIza", "Sy" + dashed[:33]},
	{"Google OAuth secret", "GOCSPX-", dashed[:28]},
	{"Google access", "ya29.", "a0" + dashed + dashed},
	{"npm", "npm_", mixed[:36]},
	{"PyPI", "pypi-", "AgEIcHlwaS5vcmc" + dashed + dashed},
	{"JSON Web Token", "eyJ", "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + dashed[:43]},
	{"SendGrid", "SG.", mixed[:22] + "." + dashed[:43]},
	{"DigitalOcean", "dop_v1_", hex64},
	{"Shopify", "shpat_", hex64[:32]},
	{"Square", "sq0atp-", dashed[:22]},
	{"Hugging Face", "hf_", mixed[:34]},
	{"Replicate", "r8_", mixed[:37]},
	{"Databricks", "dapi", hex64[:32]},
	{"Vault", "hvs.", dashed + dashed[:36]},
	{"Doppler", "dp.pt.", mixed[:43]},
	{"Grafana", "glsa_", mixed[:32] + "_1a2b3c4d"},
	{"Linear", "lin_api_", mixed[:40]},
	{"Notion", "ntn_", mixed[:46]},
	{"Postman", "PMAK-", hex64[:24] + "-" + hex64[:34]},
	{"Pulumi", "pul-", hex40},
	{"RubyGems", "rubygems_", hex64[:48]},
	{"Sentry, user", "sntryu_", hex64},
	{"Supabase", "sbp_", hex40},
	{"Tailscale", "tskey-auth-", "kABCDE1CNTRL-" + mixed[:32]},
	{"age", "AGE-SECRET-KEY-1", "QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQS"[:58]},
	{"Docker Hub", "dckr_pat_", dashed[:27]},
	{"New Relic", "NRAK-", upper + "ABCDEFG"},
	{"Figma", "figd_", dashed[:40]},
	{"Atlassian", "ATATT3xFfGF0", dashed + dashed + dashed},
	{"Groq", "gsk_", mixed[:52]},
	{"xAI", "xai-", mixed + mixed[:18]},
	{"Perplexity", "pplx-", mixed[:48]},
	{"Netlify", "nfp_", mixed[:36]},
	{"LangSmith", "lsv2_pt_", hex64[:32] + "_" + hex64[:10]},
	{"1Password", "ops_", "eyJ" + mixed + mixed + mixed + mixed + mixed},
	{"PlanetScale", "pscale_tkn_", dashed[:43]},
}

// Each is masked in the middle of a line and at its ends, wherever the output is divided: at every place in two, and byte by byte.
func TestTokensOfTheirMakers(t *testing.T) {
	r := compile(t, outward.Options{Tokens: true})
	for _, c := range corpus {
		for _, around := range [][2]string{{"token: ", " is set\r\n"}, {"", "\n"}, {`"key":"`, `","x":1}`}} {
			text := around[0] + c.open + c.secret + around[1]
			got := shown(r, text)
			if strings.Contains(got, c.secret[len(c.secret)-6:]) || strings.Contains(got, c.secret[:6]) || !strings.HasPrefix(got, around[0]) || !strings.HasSuffix(got, around[1]) {
				t.Errorf("%s: %q is shown as %q", c.name, text, got)
				break
			}
			for at := range text {
				first := at
				if again := inPieces(t, r, text, func(rest string) int { return cutOnce(&first, rest) }); again != got {
					t.Fatalf("%s, divided at %d: shown as %q, whole as %q", c.name, at, again, got)
				}
			}
			if again := inPieces(t, r, text, func(rest string) int { _, n := utf8.DecodeRuneInString(rest); return n }); again != got {
				t.Errorf("%s, byte by byte: shown as %q, whole as %q", c.name, again, got)
			}
		}
	}
}

// cutOnce divides a text after *first bytes, and nowhere else.
func cutOnce(first *int, rest string) int {
	n := *first
	*first = 0
	if n <= 0 || n > len(rest) {
		return len(rest)
	}
	return n
}
