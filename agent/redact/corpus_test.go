package redact_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tether/agent/redact"
	"tether/internal/testkit"
)

// Tests build tokens from these letters while they run, so that no scanner of sources
// takes the tokens for real ones. The tokens have the documented form and belong to
// nobody.
const (
	hex40  = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
	hex64  = hex40 + "2b0b822cd15d6c15b0f00a08"
	mixed  = "Zk4vQ9xLr2TmYb7HcWs1NpGd8JfUa3KeXi5RoVt6BqMzSy0DhPlCwEgFnAjIuO" // 62, none twice
	upper  = "Q7ZK4M2XV3RT5BYC6HLW"
	dashed = "Zk4vQ9x-Lr2TmYb_7HcWs1NpGd8JfUa-3KeXi5RoVt6Bq_MzSy0DhPlCwEg"
)

// corpus is one token of each form, as its maker documents it: the prefix, and the secret
// part.
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
	{"AWS context", "ACCA", upper[:16]},
	{"AWS Bedrock", "ABSK", "QmVkcm9ja0FQSUtleS1" + mixed + mixed + "="},
	{"AWS Bedrock, short-lived", "bedrock-api-key-", "YmVkcm9jay5hbWF6b25hd3MuY29t" + mixed},
	{"Alibaba", "LTAI", "5t" + mixed[:18]},
	{"GitLab, SCIM", "glsoat-", dashed[:20]},
	{"GitLab, feed", "glft-", dashed[:20]},
	{"GitLab, incoming mail", "glimt-", dashed[:25]},
	{"GitLab, feature flags", "glffct-", dashed[:20]},
	{"GitLab, runner registration", "GR1348941", dashed[:20]},
	{"Bitbucket", "ATBB", mixed[:24] + "1A2B3C4D"},
	{"Sourcegraph", "sgp_", hex64[:16] + "_" + hex40},
	{"Slack, client", "xoxc-", "123456789012-123456789012-1234567890123-" + hex64},
	{"Slack, cookie", "xoxd-", mixed + "/" + mixed + "="},
	{"Slack, workflow", "hooks.slack.com/workflows/", "T0123456789/A0123456789/123456789012345678/" + mixed[:24]},
	{"Slack, trigger", "https://hooks.slack.com/triggers/", "T0123456789/1234567890123/" + hex64[:32]},
	{"Discord, webhook", "https://discord.com/api/webhooks/", "123456789012345678/" + dashed + dashed[:8]},
	{"Discord, bot's header", "Authorization: Bot ", "MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe." + dashed[:38]},
	{"Discord, bot's variable", "DISCORD_TOKEN=", "MTIzNDU2Nzg5MDEyMzQ1Njc4.GaBcDe." + dashed[:38]},
	{"Twilio", "TWILIO_AUTH_TOKEN=", hex64[:32]},
	{"Telegram", "123456789:AA", dashed[:33]},
	{"Telegram, in a URL", "https://api.telegram.org/bot1234567890:AA", dashed[:33]},
	{"Mailgun", "MAILGUN_API_KEY=", "key-" + hex64[:32]},
	{"Heroku", "HRKU-", "AA" + dashed[:58]},
	{"Heroku, old", "HEROKU_API_KEY: ", "9f86d081-884c-4d65-9a2f-eaa0c55ad015"},
	{"Cloudflare", "CLOUDFLARE_API_TOKEN=", dashed[:40]},
	{"Shopify, custom", "shpca_", hex64[:32]},
	{"Shopify, private", "shppa_", hex64[:32]},
	{"Shopify, shared secret", "shpss_", hex64[:32]},
	{"NVIDIA", "nvapi-", dashed + dashed[:4]},
	{"Together", "tgp_v1_", dashed[:43]},
	{"Pinecone", "pcsk_", mixed[:6] + "_" + mixed},
	{"NuGet", "oy2", "abcdefghijklmnopqrstuvwxyz0123456789abcdefg"},
	{"Clojars", "CLOJARS_", hex64[:60]},
	{"JFrog", "AKCp", mixed + mixed[:7]},
	{"JFrog, reference", "cmVmdGtu", mixed[:56]},
	{"Docker Hub, organisation", "dckr_oat_", dashed[:32]},
	{"Vault, recovery", "hvr.", dashed[:40]},
	{"Linear, OAuth", "lin_oauth_", hex64},
	{"Grafana, API key", "eyJrIjoi", mixed + mixed[:30] + "=="},
	{"age, post-quantum", "AGE-SECRET-KEY-PQ-1", "QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQS"},
	{"Doppler, CLI", "dp.ct.", mixed[:43]},
	{"Doppler, service account", "dp.sa.", mixed[:43]},
	{"Doppler, SCIM", "dp.scim.", mixed[:43]},
	{"Doppler, audit", "dp.audit.", mixed[:43]},
	{"Supabase, secret", "sb_secret_", dashed[:22] + "_" + mixed[:8]},
	{"New Relic, insert", "NRII-", dashed[:32]},
	{"Fly.io, OAuth", "fo1_", dashed[:43]},
	{"Fly.io, macaroon", "fm1a_", mixed + mixed},
	{"Mapbox", "sk.", "eyJ1IjoiYWNjb3VudCIsImEiOiJ" + mixed[:30] + "." + dashed[:22]},
	{"MongoDB Atlas", "mdb_sa_sk_", dashed[:40]},
	{"Dynatrace", "dt0c01.", upper + "ABCD." + hex64},
	{"SonarQube, project", "sqp_", hex40},
	{"SonarQube, user", "squ_", hex40},
	{"CircleCI", "CCIPAT_", mixed[:22] + "_" + hex40},
	{"Buildkite", "bkua_", hex40},
	{"Prefect", "pnu_", mixed[:36]},
	{"Contentful", "CFPAT-", dashed[:43]},
	{"EasyPost", "EZAK", mixed[:54]},
	{"Flutterwave", "FLWSECK-", hex64[:32] + "-X"},
	{"Typeform", "tfp_", mixed[:44] + "_" + mixed[:14]},
	{"ReadMe", "rdme_", "x" + hex64 + "abcde"},
	{"Adobe", "p8e-", mixed[:32]},
	{"Azure Storage", ";AccountKey=", mixed + mixed[:24] + "=="},
	{"Azure Service Bus", ";SharedAccessKey=", mixed[:43] + "="},
	{"Microsoft Entra", "abC8Q~" + dashed[:1], dashed[1:34]},
	{"HCP Terraform", "ZkvQxLrTmYbHcW.atlasv1.", dashed + mixed[:7]},
	{"Airtable", "patZ", mixed[:13] + "." + hex64},
	{"Twilio, API key", "SK9f86", hex40[4:32]},
	{"Dropbox", "sl.B", dashed + dashed + dashed},
	{"Dropbox, short-lived", "sl.u.", dashed + dashed + dashed},
	{"Facebook", "EAAB", mixed + mixed},
	{"Facebook, page", "EAAC", mixed + mixed},
	{"crates.io", "cio", mixed[:32]},
	{"Okta", "Authorization: SSWS ", "00" + dashed[:40]},
	{"Mailgun, bare", "key-", hex64[:32]},
	{"Brevo", "xkeysib-", hex64 + "-" + mixed[:16]},
	{"Brevo, SMTP", "xsmtpsib-", hex64 + "-" + mixed[:16]},
	{"Shippo", "shippo_live_", hex40},
	{"Shippo, test", "shippo_test_", hex40},
	{"JFrog, short", "AKCp", mixed[:24]},
	{"AWS, the old form", "A3TX", upper[:16]},
	{"AWS request, signed", "X-Amz-Signature=", hex64},
	{"AWS request, session", "X-Amz-Security-Token=", mixed + mixed},
	{"AWS request, header", "SignedHeaders=host, Signature=", hex64},
	{"PostHog", "phx_", mixed[:43]},
	{"Apify", "apify_api_", mixed[:36]},
	{"Notion, the old form", "secret_", mixed[:43]},
	{"Frame.io", "fio-u-", dashed + mixed[:5]},
	{"Duffel", "duffel_live_", mixed[:43]},
	{"Infracost", "ico-", mixed[:32]},
	{"Harness", "pat.", mixed[:22] + "." + mixed[:24] + "." + mixed[:20]},
	{"Octopus", "API-", upper + "ABCDEF"},
	{"Scalingo", "tk-us-", dashed[:48]},
	{"ClickHouse", "4b1d", mixed[:38]},
	{"Hugging Face, organisation", "api_org_", "ZkvQxLrTmYbHcWsNpGdJfUaKeXiRoVtBqM"},
	{"Cloudflare, origin", "v1.0-", hex64[:24] + "-" + hex64 + hex64 + hex64[:18]},
	{"user of a URL", "https://", mixed[:24]},
	{"tether, local door", "tether_", dashed[:42] + "A"},
	{"tether-host", "tetherhost_", dashed[:42] + "8"},
	{"tether-host, pairing", "tetherpair_", dashed[:42] + "w"},
}

// Each is masked in the middle of a line and at its ends, wherever the output is divided:
// in two at every fourth place (a soak takes every place), and byte by byte.
func TestTokensOfTheirMakers(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true})
	for round := range testkit.Rounds(t, 1, 12) {
		for k, c := range corpus {
			arounds := [][2]string{{"value: ", " is set\r\n"}, {"", "\n"}, {`"key":"`, `","x":1}`}}
			if c.name == "user of a URL" {
				arounds = [][2]string{{"remote: ", "@git.example/x\r\n"}}
			}
			for _, around := range arounds {
				text := around[0] + c.open + c.secret + around[1]
				got := shown(r, text)
				if strings.Contains(got, c.secret[len(c.secret)-6:]) || strings.Contains(got, c.secret[:6]) || !strings.HasPrefix(got, around[0]) || !strings.HasSuffix(got, around[1]) {
					t.Errorf("%s: %q is shown as %q", c.name, text, got)
					break
				}
				every := testkit.Load(12, 24)
				for at := (k + round) % every; at < len(text); at += every {
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
}

// A private key of PuTTY is masked like one in PEM, and so is a whole PEM file in base64,
// in one line or in several.
func TestKeysInOtherForms(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true})
	body := strings.Repeat("MIIEow"+mixed[:50]+"\n", 12)
	for _, kind := range []string{"", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "} {
		pem := "-----BEGIN " + kind + "PRIVATE KEY-----\n" + body + "-----END " + kind + "PRIVATE KEY-----\n"
		whole := base64.StdEncoding.EncodeToString([]byte(pem))
		var lines []string
		for rest := range slices.Chunk([]byte(whole), 76) {
			lines = append(lines, string(rest))
		}
		for _, text := range []string{"key: " + whole + "\n", strings.Join(lines, "\n") + "\n$ ls\n"} {
			got := shown(r, text)
			// Up to three bytes of the label are in the character behind it; a last line
			// that is short may be any word.
			if hidden := strings.Count(got, "*"); hidden < len(whole)-68 || strings.Contains(got, whole[60:80]) || !strings.HasSuffix(text, "$ ls\n") != !strings.HasSuffix(got, "$ ls\n") {
				t.Errorf("%sPRIVATE KEY in base64 is shown as %q", kind, got)
			}
			if again := inPieces(t, r, text, func(string) int { return 1 }); again != got {
				t.Errorf("byte by byte it is shown as %q, whole as %q", again, got)
			}
		}
	}
	putty := "PuTTY-User-Key-File-3: ssh-ed25519\r\nPrivate-Lines: 1\r\n" + mixed[:44] + "\r\nPrivate-MAC: " + hex64 + "\r\n"
	if got := shown(r, putty); strings.Contains(got, mixed[:6]) || !strings.HasPrefix(got, "PuTTY-User-Key-File-3: ssh-ed25519\r\nPrivate-Lines: 1\r\n") {
		t.Errorf("a key of PuTTY's is shown as %q", got)
	}
	certificate := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\n" + body))
	if got := shown(r, certificate+"\n"); got != certificate+"\n" {
		t.Errorf("a certificate in base64 is shown as %q", got)
	}
}

// Text that only resembles a token stays: words, names, numbers, addresses and checksums
// of ordinary output.
func TestNoTokens(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true})
	for _, text := range []string{
		"ACCADEMIA-DELLE-BELLE-ARTI-DI-FIRENZE", "sk-learn", "tfp_helper", "sqp_solver", "hvr.js",
		"glft-1", "fo1_test", "p8e-1", "pnu_x", "HRKU-1", "EZAK", "LTAIR", "oy2 x", "bkua_", "rdme_readme", "shpca_1", "sgp_local_server",
		"12:AA:BB:CC:DD:EE", "at 12:AA", "fe80::1:AAAA:1", "SHA256:AA" + mixed[:41], "4:AA" + mixed + mixed, "8Q~x", "module.atlasv1.example",
		";AccountKey=none", ";SharedAccessKey=", "x-auth-token: none", "authorization: bot 1",
		"TWILIO_AUTH_TOKEN is not set", "HEROKU_API_KEY: unset", "discord token: see the docs", "https://discord.com/api/webhooks/", "https://hooks.slack.com/docs/triggers/more",
		"https://api.telegram.org/bot", "dp.audit.log", "dp.sa.x", "xoxc-", "nvapi-key", "https://github.com/" + strings.Repeat("name/", 9), "bedrock-api-key-name",
		"tether_host_up 1", "tether_hosts_that_have_not_yet_got_all_that_was_printed", "tetherpair_x", "tether_pkg_" + hex40[:20],
		hex40, hex64, "sha512-" + mixed + mixed, "0x" + hex64, "go1.26.linux-amd64", strings.Repeat("EAAA", 16), strings.Repeat("0123456789abcdef", 8),
	} {
		for _, line := range []string{text + "\n", "x " + text + " y\n", "\x1b[32m" + text + "\x1b[0m\r\n"} {
			if got := shown(r, line); got != line {
				t.Errorf("%q is shown as %q", line, got)
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
