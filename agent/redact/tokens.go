package redact

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// gitleaksRules are the token forms of a maintained public rule set: see
// scripts/update-secrets.sh.
//
//go:embed rules/gitleaks.txt
var gitleaksRules string

// token is a form of credentials that the issuer made recognisable.
type token struct {
	prefix string // its first bytes, which stay visible
	re     string // matches the whole token, from the prefix on; a token begins a word
}

// ours are these forms, each as its issuer or the public rules of secret scanners
// describe it. A prefix is followed by characters of tokenTail. The frequency of its
// bytes 1–3 and 2–4 in ordinary text decides the speed of the search in all text (see
// begin): a form that begins like the inside of "path" or "version" is not worth it.
var ours = []token{
	{"AKIA", `AKIA[A-Z2-7]{16}\b`}, // AWS access key ids; the secret half is among contexts
	{"ASIA", `ASIA[A-Z2-7]{16}\b`},
	{"ABIA", `ABIA[A-Z2-7]{16}\b`},
	{"ACCA", `ACCA[A-Z2-7]{16}\b`},
	{"ABSK", `ABSK[A-Za-z0-9+/]{100,}={0,2}`}, // Bedrock
	{"bedrock-api-key-", `bedrock-api-key-[A-Za-z0-9+/=-]{50,}`},
	{"LTAI", `LTAI[A-Za-z0-9]{20}\b`}, // Alibaba
	{"ghp_", `ghp_[A-Za-z0-9]{36,}`},  // GitHub
	{"gho_", `gho_[A-Za-z0-9]{36,}`},
	{"ghu_", `ghu_[A-Za-z0-9]{36,}`},
	{"ghs_", `ghs_[A-Za-z0-9_.-]{36,}`},
	{"ghr_", `ghr_[A-Za-z0-9]{36,}`},
	{"github_pat_", `github_pat_[A-Za-z0-9_]{36,}`},
	{"glpat-", `glpat-[A-Za-z0-9_.-]{20,}`}, // GitLab
	{"gldt-", `gldt-[A-Za-z0-9_.-]{20,}`},
	{"glrt-", `glrt-[A-Za-z0-9_.-]{20,}`},
	{"glcbt-", `glcbt-[A-Za-z0-9_.-]{20,}`},
	{"glptt-", `glptt-[A-Za-z0-9_.-]{20,}`},
	{"glagent-", `glagent-[A-Za-z0-9_.-]{20,}`},
	{"gloas-", `gloas-[A-Za-z0-9_.-]{20,}`},
	{"glsoat-", `glsoat-[A-Za-z0-9_.-]{20,}`},
	{"glft-", `glft-[A-Za-z0-9_.-]{20,}`},
	{"glimt-", `glimt-[A-Za-z0-9_.-]{20,}`},
	{"glffct-", `glffct-[A-Za-z0-9_.-]{20,}`},
	{"GR1348941", `GR1348941[A-Za-z0-9_-]{20}`},
	{"ATBB", `ATBB[A-Za-z0-9_=-]{28,}`}, // Bitbucket
	{"sgp_", `sgp_[A-Za-z0-9_]{40,}`},   // Sourcegraph
	{"xoxa-", `xoxa-[A-Za-z0-9-]{10,}`}, // Slack
	{"xoxb-", `xoxb-[A-Za-z0-9-]{10,}`},
	{"xoxe-", `xoxe-[A-Za-z0-9_-]{10,}`},
	{"xoxe.xoxb-", `xoxe\.xoxb-[A-Za-z0-9_-]{10,}`},
	{"xoxe.xoxp-", `xoxe\.xoxp-[A-Za-z0-9_-]{10,}`},
	{"xoxc-", `xoxc-[A-Za-z0-9-]{10,}`},
	{"xoxd-", `xoxd-[A-Za-z0-9/+=-]{10,}`},
	{"xoxo-", `xoxo-[A-Za-z0-9-]{10,}`},
	{"xoxp-", `xoxp-[A-Za-z0-9-]{10,}`},
	{"xoxr-", `xoxr-[A-Za-z0-9-]{10,}`},
	{"xoxs-", `xoxs-[A-Za-z0-9-]{10,}`},
	{"xapp-", `xapp-[A-Za-z0-9-]{10,}`},
	{"hooks.slack.com/services/", `hooks\.slack\.com/services/[A-Za-z0-9/]{20,}`},
	{"hooks.slack.com/workflows/", `hooks\.slack\.com/workflows/[A-Za-z0-9/]{20,}`},
	{"hooks.slack.com/triggers/", `hooks\.slack\.com/triggers/[A-Za-z0-9/]{20,}`},
	{"discord.com/api/webhooks/", `discord\.com/api/webhooks/[0-9]{17,}/[A-Za-z0-9_-]{60,}`},
	{"discordapp.com/api/webhooks/", `discordapp\.com/api/webhooks/[0-9]{17,}/[A-Za-z0-9_-]{60,}`},
	{"sk-", `sk-[A-Za-z0-9_-]{20,}`},         // OpenAI, Anthropic and others that adopted the form
	{"sk_live_", `sk_live_[A-Za-z0-9]{16,}`}, // Stripe
	{"sk_test_", `sk_test_[A-Za-z0-9]{16,}`},
	{"rk_live_", `rk_live_[A-Za-z0-9]{16,}`},
	{"rk_test_", `rk_test_[A-Za-z0-9]{16,}`},
	{"whsec_", `whsec_[A-Za-z0-9+/=]{24,}`},
	{"npm_", `npm_[A-Za-z0-9]{36,}`},
	{"pypi-", `pypi-[A-Za-z0-9_-]{50,}`},
	{"rubygems_", `rubygems_[a-f0-9]{48}`},
	{"oy2", `oy2[a-z0-9]{43}\b`}, // NuGet
	{"CLOJARS_", `CLOJARS_[a-z0-9]{60}`},
	{"AKC", `AKC(?:p[A-Za-z0-9]{20,}|[A-Za-z0-9]{60,})`}, // JFrog
	{"cmVmdGtu", `cmVmdGtu[A-Za-z0-9]{20,}`},
	{"AIza", `AIza[A-Za-z0-9_-]{35}`}, // Google
	{"ya29.", `ya29\.[A-Za-z0-9_-]{20,}`},
	{"GOCSPX-", `GOCSPX-[A-Za-z0-9_-]{20,}`},
	{"1//0", `1//0[A-Za-z0-9_-]{30,}`},
	{"eyJ", `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`}, // JSON Web Tokens
	{"hf_", `hf_[A-Za-z0-9]{30,}`},                                             // Hugging Face
	{"nvapi-", `nvapi-[A-Za-z0-9_-]{60,}`},                                     // NVIDIA
	{"tgp_v1_", `tgp_v1_[A-Za-z0-9_-]{40,}`},                                   // Together
	{"pcsk_", `pcsk_[A-Za-z0-9_]{50,}`},                                        // Pinecone
	{"gsk_", `gsk_[A-Za-z0-9]{40,}`},                                           // Groq
	{"xai-", `xai-[A-Za-z0-9]{40,}`},
	{"pplx-", `pplx-[A-Za-z0-9]{40,}`},
	{"r8_", `r8_[A-Za-z0-9]{36,}`},                        // Replicate
	{"SG.", `SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`}, // SendGrid
	{"dop_v1_", `dop_v1_[a-f0-9]{64}`},                    // DigitalOcean
	{"doo_v1_", `doo_v1_[a-f0-9]{64}`},
	{"dor_v1_", `dor_v1_[a-f0-9]{64}`},
	{"HRKU-", `HRKU-[A-Za-z0-9_-]{36,}`},         // Heroku
	{"dckr_pat_", `dckr_pat_[A-Za-z0-9_-]{20,}`}, // Docker
	{"dckr_oat_", `dckr_oat_[A-Za-z0-9_-]{20,}`},
	{"hvs.", `hvs\.[A-Za-z0-9_-]{24,}`}, // HashiCorp Vault
	{"hvb.", `hvb\.[A-Za-z0-9_-]{24,}`},
	{"hvr.", `hvr\.[A-Za-z0-9_-]{24,}`},
	{"lin_api_", `lin_api_[A-Za-z0-9]{32,}`}, // Linear
	{"lin_oauth_", `lin_oauth_[A-Za-z0-9]{32,}`},
	{"ntn_", `ntn_[A-Za-z0-9]{40,}`}, // Notion
	{"figd_", `figd_[A-Za-z0-9_-]{36,}`},
	{"shpat_", `shpat_[a-fA-F0-9]{32}`}, // Shopify
	{"shpca_", `shpca_[a-fA-F0-9]{32}`},
	{"shppa_", `shppa_[a-fA-F0-9]{32}`},
	{"shpss_", `shpss_[a-fA-F0-9]{32}`},
	{"dapi", `dapi[a-f0-9]{32}`}, // Databricks
	{"PMAK-", `PMAK-[a-f0-9]{24}-[a-f0-9]{34}`},
	{"sntrys_", `sntrys_[A-Za-z0-9+/=_-]{40,}`}, // Sentry
	{"sntryu_", `sntryu_[a-f0-9]{64}`},
	{"glsa_", `glsa_[A-Za-z0-9_]{32,}`}, // Grafana
	{"glc_", `glc_[A-Za-z0-9+/=]{32,}`},
	{"eyJrIjoi", `eyJrIjoi[A-Za-z0-9+/]{60,}={0,2}`},
	{"AGE-SECRET-KEY-1", `AGE-SECRET-KEY-1[A-Z0-9]{50,}`},
	{"AGE-SECRET-KEY-PQ-1", `AGE-SECRET-KEY-PQ-1[A-Z0-9]{50,}`},
	{"tskey-", `tskey-[a-z]+-[A-Za-z0-9-]{16,}`}, // Tailscale
	{"vercel_", `vercel_[A-Za-z0-9_]{24,}`},
	{"ATATT3", `ATATT3[A-Za-z0-9_=-]{100,}`}, // Atlassian
	{"ATCTT3", `ATCTT3[A-Za-z0-9_=-]{100,}`},
	{"sq0atp-", `sq0atp-[A-Za-z0-9_-]{22,}`}, // Square
	{"sq0csp-", `sq0csp-[A-Za-z0-9_-]{43,}`},
	{"dp.pt.", `dp\.pt\.[A-Za-z0-9]{40,}`}, // Doppler
	{"dp.st.", `dp\.st\.[A-Za-z0-9_.-]{40,}`},
	{"dp.ct.", `dp\.ct\.[A-Za-z0-9]{40,}`},
	{"dp.sa.", `dp\.sa\.[A-Za-z0-9]{40,}`},
	{"dp.scim.", `dp\.scim\.[A-Za-z0-9]{40,}`},
	{"dp.audit.", `dp\.audit\.[A-Za-z0-9]{40,}`},
	{"pul-", `pul-[a-f0-9]{40}`}, // Pulumi
	{"sbp_", `sbp_[a-f0-9]{40}`}, // Supabase
	{"sb_secret_", `sb_secret_[A-Za-z0-9_-]{30,}`},
	{"NRAK-", `NRAK-[A-Z0-9]{27}`}, // New Relic
	{"NRII-", `NRII-[A-Za-z0-9_-]{32}`},
	{"nfp_", `nfp_[A-Za-z0-9]{36,}`},                     // Netlify
	{"lsv2_", `lsv2_[a-z]{2}_[a-f0-9]{32}_[a-f0-9]{10}`}, // LangSmith
	{"ops_eyJ", `ops_eyJ[A-Za-z0-9_-]{200,}`},            // 1Password
	{"pscale_", `pscale_[a-z]+_[A-Za-z0-9_.=-]{32,}`},    // PlanetScale
	{"fm2_", `fm2_[A-Za-z0-9+/=]{100,}`},                 // Fly.io
	{"fm1a_", `fm1a_[A-Za-z0-9+/=]{100,}`},
	{"fm1r_", `fm1r_[A-Za-z0-9+/=]{100,}`},
	{"fo1_", `fo1_[A-Za-z0-9_-]{43}`},
	{"sk.eyJ", `sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}`}, // Mapbox
	{"mdb_sa_sk_", `mdb_sa_sk_[A-Za-z0-9_-]{40}`},               // MongoDB Atlas
	{"dt0c01.", `dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}`},     // Dynatrace
	{"sqp_", `sqp_[a-f0-9]{40}`},                                // SonarQube
	{"squ_", `squ_[a-f0-9]{40}`},
	{"sqa_", `sqa_[a-f0-9]{40}`},
	{"CCIPAT_", `CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}`}, // CircleCI
	{"CCIPRJ_", `CCIPRJ_[A-Za-z0-9]{22}_[a-f0-9]{40}`},
	{"bkua_", `bkua_[a-f0-9]{40}`},        // Buildkite
	{"pnu_", `pnu_[A-Za-z0-9]{36}`},       // Prefect
	{"CFPAT-", `CFPAT-[A-Za-z0-9_-]{43}`}, // Contentful
	{"EZAK", `EZAK[A-Za-z0-9]{54}`},       // EasyPost
	{"aio_", `aio_[A-Za-z0-9]{28}\b`},     // Adafruit
	{"EZTK", `EZTK[A-Za-z0-9]{54}`},
	{"FLWSECK-", `FLWSECK-[a-h0-9]{32}-X`}, // Flutterwave
	{"FLWSECK_TEST-", `FLWSECK_TEST-[a-h0-9]{32}-X`},
	{"tfp_", `tfp_[A-Za-z0-9_.=-]{40,}`},                   // Typeform
	{"rdme_", `rdme_[a-z0-9]{70}`},                         // ReadMe
	{"p8e-", `p8e-[A-Za-z0-9_-]{32}`},                      // Adobe
	{"A3T", `A3T[A-Z0-9][A-Z2-7]{16}\b`},                   // AWS, the old form
	{"cio", `cio[A-Za-z0-9]{32}\b`},                        // crates.io
	{"sl.", `sl\.(?:u\.)?[A-Za-z0-9_-]{100,}`},             // Dropbox
	{"key-", `key-[a-f0-9]{32}\b`},                         // Mailgun
	{"xsmtpsib-", `xsmtpsib-[a-f0-9]{64}-[A-Za-z0-9]{16}`}, // Brevo
	{"phx_", `phx_[A-Za-z0-9]{40,}`},                       // PostHog
	{"apify_api_", `apify_api_[A-Za-z0-9]{36}`},
	{"secret_", `secret_[A-Za-z0-9]{43}\b`}, // Notion, the old form
	// Tether's own: 32 bytes, so the last character has two bits that are 0. Names of
	// metrics therefore do not match.
	{"tether_", `tether_[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]\b`},
	{"tetherhost_", `tetherhost_[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]\b`},
	{"tetherpair_", `tetherpair_[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]\b`},
}

// tokens are ours and the forms of gitleaks whose prefix does not begin with one of ours.
var tokens = sync.OnceValue(func() []token {
	all := ours
	for line := range strings.Lines(gitleaksRules) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 || line[0] == '#' {
			continue
		}
		if !slices.ContainsFunc(ours, func(t token) bool { return strings.HasPrefix(fields[1], t.prefix) }) {
			all = append(all, token{fields[1], fields[2]})
		}
	}
	return all
})

// tokenTail matches the characters of tokens after their prefix.
const tokenTail = `[A-Za-z0-9_./+=~%-]+`

// tailChars are these characters.
const tailChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+=~%-"
