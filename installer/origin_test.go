package installer

import "testing"

func TestOrigin(t *testing.T) {
	const base = "https://tether.example/r"
	for _, c := range []struct{ path, how, update string }{
		{"/home/me/.local/bin/tether", "into ~/.local/bin, as the install script does", "curl -fsSL " + base + "/install.sh | sh"},
		{"/usr/lib/node_modules/tether/node_modules/tether-linux-x64/bin/tether", "with npm", "npm install --global tether@latest"},
		{"/home/me/w/node_modules/@some-one/my-tether-linux-x64/bin/tether", "with npm", "npm install --global @some-one/my-tether@latest"},
		{"/home/me/.npm/_npx/0a1b/node_modules/tether-linux-x64/bin/tether", "with npx, for this time", ""},
		{"/opt/homebrew/Cellar/tether/0.1.0/bin/tether", "with Homebrew", "brew upgrade tether"},
		{"/nix/store/abc-tether-0.1.0/bin/tether", "with Nix", "nix profile upgrade tether"},
		{"/usr/bin/tether", "with a package of the system", "the system's package manager with the newer package"},
		{"C:/Users/me/scoop/apps/tether/current/tether.exe", "with Scoop", "scoop update tether"},
		{"C:/Users/me/AppData/Local/Programs/tether/tether.exe", "with the installer for Windows (.msi)", "winget upgrade tether, or the installer of the newer version"},
		{"/home/me/src/tether/bin/tether", "by hand", ""},
		{"tether", "by hand", ""},
	} {
		if how, update := Origin(c.path, "/home/me", base); how != c.how || update != c.update {
			t.Errorf("%s: %q, %q, want %q, %q", c.path, how, update, c.how, c.update)
		}
	}
	if _, update := Origin("/home/me/.local/bin/tether", "/home/me", ""); update != "the install script, again" {
		t.Errorf("without an address: %q", update)
	}
}
