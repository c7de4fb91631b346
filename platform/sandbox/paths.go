package sandbox

import "path/filepath"

// Toolchains returns directories and files below the home directory that hold programs
// and settings, and no secrets.
func Toolchains(home string) []string {
	return below(home, ".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes", ".editorconfig", ".tool-versions",
		".local/bin", "bin", ".cargo/bin", ".cargo/env", ".rustup", "go/bin", "sdk", ".local/go", ".nvm", ".volta", ".fnm", ".local/share/fnm",
		".local/share/nvm", ".asdf", ".local/share/mise", ".pyenv", ".rbenv", ".rvm", ".local/share/uv", ".local/share/pipx", ".local/lib",
		".bun/bin", ".deno/bin", ".dotnet", ".sdkman/candidates", ".ghcup", ".juliaup", ".nix-profile", ".npm-global", ".local/share/pnpm")
}

// Caches returns directories below the home directory with files that package managers
// and compilers have fetched or built.
func Caches(home string) []string {
	return below(home, "go/pkg/mod", ".cache/go-build", ".cargo/registry", ".cargo/git", ".npm/_cacache", ".cache/yarn", ".cache/pnpm",
		".yarn/berry/cache", ".bun/install/cache", ".cache/deno", ".cache/pip", ".cache/uv", ".cache/pypoetry/cache", ".m2/repository",
		".gradle/caches", ".gradle/wrapper", ".nuget/packages", ".gem", ".cabal/packages", ".stack/pantry", ".cache/ms-playwright", ".cache/bazelisk",
		".cache/sccache", ".cache/ccache", ".cache/pre-commit")
}

// Secrets returns directories and files that are always hidden, even inside a grant:
// keys, credentials of clouds and services, keyrings and profiles of browsers.
func Secrets(home string) []string {
	return append(below(home, ".ssh", ".gnupg", ".pki", ".aws", ".azure", ".config/gcloud", ".config/doctl", ".config/hcloud", ".config/linode-cli",
		".oci", ".aliyun", ".bluemix", ".kube", ".docker", ".config/containers/auth.json", ".config/gh", ".config/glab-cli", ".config/hub",
		".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".config/pypoetry/auth.toml",
		".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties",
		".terraform.d", ".terraformrc", ".vault-token", ".config/op", ".config/rclone", ".config/heroku", ".fly", ".vercel", ".config/netlify",
		".pgpass", ".my.cnf", ".mylogin.cnf", ".boto", ".s3cfg", ".msmtprc", ".password-store", ".local/share/keyrings", ".local/share/kwalletd",
		".config/1Password", ".config/Bitwarden", ".config/keepassxc", ".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
		".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".cache/mozilla", ".cache/google-chrome", ".cache/chromium", ".thunderbird",
		".config/Slack", ".config/discord", ".config/Signal", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history",
		"Library/Keychains", "Library/Cookies", "Library/Safari", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox"),
		// secrets of the machine, which root can read
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers", "/etc/sudoers.d",
		"/etc/wireguard", "/etc/NetworkManager", "/etc/krb5.keytab", "/etc/docker", "/etc/kubernetes", "/etc/rancher")
}

func below(home string, names ...string) []string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, filepath.Join(home, filepath.FromSlash(name)))
	}
	return all
}
