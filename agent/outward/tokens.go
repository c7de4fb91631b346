package outward

// token is a form of credentials that their issuer has made to be recognised.
type token struct {
	prefix string // it begins with this, which is shown
	re     string // the whole; it begins with the prefix, at the beginning of a word
}

// tokens are those forms, each as its issuer or the public rules of secret scanners describe it. What follows a prefix is of the
// characters of tokenTail.
var tokens = []token{
	{"AKIA", `AKIA[A-Z2-7]{16}\b`}, // AWS access key ids; the secret half is among contexts
	{"ASIA", `ASIA[A-Z2-7]{16}\b`},
	{"ABIA", `ABIA[A-Z2-7]{16}\b`},
	{"ghp_", `ghp_[A-Za-z0-9]{36,}`}, // GitHub
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
	{"xoxa-", `xoxa-[A-Za-z0-9-]{10,}`}, // Slack
	{"xoxb-", `xoxb-[A-Za-z0-9-]{10,}`},
	{"xoxe-", `xoxe-[A-Za-z0-9-]{10,}`},
	{"xoxe.xoxp-", `xoxe\.xoxp-[A-Za-z0-9-]{10,}`},
	{"xoxp-", `xoxp-[A-Za-z0-9-]{10,}`},
	{"xoxr-", `xoxr-[A-Za-z0-9-]{10,}`},
	{"xoxs-", `xoxs-[A-Za-z0-9-]{10,}`},
	{"xapp-", `xapp-[A-Za-z0-9-]{10,}`},
	{"hooks.slack.com/services/", `hooks\.slack\.com/services/[A-Za-z0-9/]{20,}`},
	{"sk-", `sk-[A-Za-z0-9_-]{20,}`},         // OpenAI, Anthropic and those who took over the form
	{"sk_live_", `sk_live_[A-Za-z0-9]{16,}`}, // Stripe
	{"sk_test_", `sk_test_[A-Za-z0-9]{16,}`},
	{"rk_live_", `rk_live_[A-Za-z0-9]{16,}`},
	{"rk_test_", `rk_test_[A-Za-z0-9]{16,}`},
	{"whsec_", `whsec_[A-Za-z0-9+/=]{24,}`},
	{"npm_", `npm_[A-Za-z0-9]{36,}`},
	{"pypi-", `pypi-[A-Za-z0-9_-]{50,}`},
	{"rubygems_", `rubygems_[a-f0-9]{48}`},
	{"AIza", `AIza[A-Za-z0-9_-]{35}`}, // Google
	{"ya29.", `ya29\.[A-Za-z0-9_-]{20,}`},
	{"GOCSPX-", `GOCSPX-[A-Za-z0-9_-]{20,}`},
	{"1//0", `1//0[A-Za-z0-9_-]{30,}`},
	{"eyJ", `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`}, // JSON Web Tokens
	{"hf_", `hf_[A-Za-z0-9]{30,}`},                                             // Hugging Face
	{"gsk_", `gsk_[A-Za-z0-9]{40,}`},                                           // Groq
	{"xai-", `xai-[A-Za-z0-9]{40,}`},
	{"pplx-", `pplx-[A-Za-z0-9]{40,}`},
	{"r8_", `r8_[A-Za-z0-9]{36,}`},                        // Replicate
	{"SG.", `SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`}, // SendGrid
	{"dop_v1_", `dop_v1_[a-f0-9]{64}`},                    // DigitalOcean
	{"doo_v1_", `doo_v1_[a-f0-9]{64}`},
	{"dor_v1_", `dor_v1_[a-f0-9]{64}`},
	{"dckr_pat_", `dckr_pat_[A-Za-z0-9_-]{20,}`}, // Docker
	{"hvs.", `hvs\.[A-Za-z0-9_-]{24,}`},          // HashiCorp Vault
	{"hvb.", `hvb\.[A-Za-z0-9_-]{24,}`},
	{"lin_api_", `lin_api_[A-Za-z0-9]{32,}`}, // Linear
	{"ntn_", `ntn_[A-Za-z0-9]{40,}`},         // Notion
	{"figd_", `figd_[A-Za-z0-9_-]{36,}`},
	{"shpat_", `shpat_[a-fA-F0-9]{32}`}, // Shopify
	{"dapi", `dapi[a-f0-9]{32}`},        // Databricks
	{"PMAK-", `PMAK-[a-f0-9]{24}-[a-f0-9]{34}`},
	{"sntrys_", `sntrys_[A-Za-z0-9+/=_-]{40,}`}, // Sentry
	{"sntryu_", `sntryu_[a-f0-9]{64}`},
	{"glsa_", `glsa_[A-Za-z0-9_]{32,}`}, // Grafana
	{"glc_", `glc_[A-Za-z0-9+/=]{32,}`},
	{"AGE-SECRET-KEY-1", `AGE-SECRET-KEY-1[A-Z0-9]{50,}`},
	{"tskey-", `tskey-[a-z]+-[A-Za-z0-9-]{16,}`}, // Tailscale
	{"vercel_", `vercel_[A-Za-z0-9_]{24,}`},
	{"ATATT3", `ATATT3[A-Za-z0-9_=-]{100,}`}, // Atlassian
	{"ATCTT3", `ATCTT3[A-Za-z0-9_=-]{100,}`},
	{"sq0atp-", `sq0atp-[A-Za-z0-9_-]{22,}`}, // Square
	{"sq0csp-", `sq0csp-[A-Za-z0-9_-]{43,}`},
	{"dp.pt.", `dp\.pt\.[A-Za-z0-9]{40,}`}, // Doppler
	{"dp.st.", `dp\.st\.[A-Za-z0-9_.-]{40,}`},
	{"pul-", `pul-[a-f0-9]{40}`},                         // Pulumi
	{"sbp_", `sbp_[a-f0-9]{40}`},                         // Supabase
	{"NRAK-", `NRAK-[A-Z0-9]{27}`},                       // New Relic
	{"nfp_", `nfp_[A-Za-z0-9]{36,}`},                     // Netlify
	{"lsv2_", `lsv2_[a-z]{2}_[a-f0-9]{32}_[a-f0-9]{10}`}, // LangSmith
	{"ops_eyJ", `ops_eyJ[A-Za-z0-9_-]{200,}`},            // 1Password
	{"pscale_", `pscale_[a-z]+_[A-Za-z0-9_.=-]{32,}`},    // PlanetScale
	{"fm2_", `fm2_[A-Za-z0-9+/=]{100,}`},                 // Fly.io
}

// tokenTail are the characters of tokens after their prefix.
const tokenTail = `[A-Za-z0-9_./+=~-]+`

// labelled are credentials that only what is before them tells: a label and, as the group, the secret, which is of tokenTail.
var labelled = []struct{ label, secret string }{
	{`(?i:aws_?secret_?access_?key)["']?[ \t]*[:=][ \t]*["']?`, `([A-Za-z0-9/+=]{16,})`},
	{`(?i:aws_?session_?token)["']?[ \t]*[:=][ \t]*["']?`, `([A-Za-z0-9/+=]{16,})`},
	{`(?i:authorization)["']?[ \t]*[:=][ \t]*["']?(?i:bearer|basic|token)[ \t]+`, `([A-Za-z0-9._~+/=-]{8,})`},
	{`(?i:x-api-key)["']?[ \t]*[:=][ \t]*["']?`, `([A-Za-z0-9._~+/=-]{12,})`},
}

// Others are found by what is around them.
const (
	privateKeyLabel = `-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----`
	privateKeyBody  = `((?:[^-]|-[^-])+)`
	passwordInURL   = `://[^\s/:@?#'"]*:([^\s/@?#'"]{3,})@`
)
