package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// newKey makes a key without a passphrase, whose comment is no help to know its kind, and
// returns it and its line among the signers.
func newKey(t *testing.T, kind string) (path, line string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "(ED25519) is what it could be", "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	public := must.Get(os.ReadFile(path + ".pub"))(t)
	words := strings.Fields(string(public))
	return path, fmt.Sprintf("%s namespaces=%q %s %s\n", signer, signer, words[0], words[1])
}

// released is a release of one file, with its checksums.
func released(t *testing.T) *release {
	t.Helper()
	r := &release{out: t.TempDir(), signers: filepath.Join(t.TempDir(), "signers")}
	write(t, filepath.Join(r.out, "tether.tar.gz"), "an archive")
	sums := must.Get(sumsIn(r.out))(t)
	write(t, filepath.Join(r.out, sumsName), sums)
	return r
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func needSSHKeygen(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen: OpenSSH has it")
	}
}

func TestSignature(t *testing.T) {
	needSSHKeygen(t)
	r := released(t)
	key, line := newKey(t, "ed25519")
	r.key = key
	write(t, r.signers, line)
	must.Do(t, r.sign(t.Context()))
	first := must.Get(os.ReadFile(filepath.Join(r.out, signature)))(t)
	must.Do(t, os.Remove(filepath.Join(r.out, signature)))
	must.Do(t, r.sign(t.Context()))
	if again, err := os.ReadFile(filepath.Join(r.out, signature)); err != nil || !bytes.Equal(again, first) {
		t.Errorf("two signatures of one list differ (%v)", err)
	}

	sums := filepath.Join(r.out, sumsName)
	list := must.Get(os.ReadFile(sums))(t)
	write(t, sums, strings.Replace(string(list), "tether", "tethes", 1))
	if err := r.verify(t.Context()); err == nil {
		t.Error("a list that was changed is believed")
	}
	write(t, sums, string(list))
	_, other := newKey(t, "ed25519")
	for what, text := range map[string]string{
		"of a key that is not the project's":      other,
		"by a key of somebody else's name":        strings.Replace(line, signer+" ", "somebody ", 1),
		"by a key that may sign something else":   strings.Replace(line, `"`+signer+`"`, `"file"`, 1),
		"by a key that is no longer to be taken":  strings.Replace(line, " namespaces=", ` valid-before="20200101",namespaces=`, 1),
		"where the list of signers has no key":    "\n",
		"where the list of signers is not a list": "nothing of sense\n",
	} {
		write(t, r.signers, text)
		if err := r.verify(t.Context()); err == nil {
			t.Errorf("a signature %s is believed", what)
		}
	}
	write(t, r.signers, other+line) // while keys change there are two
	check.OK(t, r.verify(t.Context()))
}

// A key that users could not verify with fails the release, before anybody has it.
func TestKeysThatDoNotSign(t *testing.T) {
	needSSHKeygen(t)
	_, line := newKey(t, "ed25519")
	stranger, _ := newKey(t, "ed25519")
	other, _ := newKey(t, "ecdsa")
	for name, c := range map[string]struct{ key, want string }{
		"one that is not there":            {filepath.Join(t.TempDir(), "none"), "none"},
		"one of another kind":              {other, "no Ed25519 key"},
		"one that is not among the public": {stranger, "-Y verify"},
	} {
		r := released(t)
		r.key = c.key
		write(t, r.signers, line)
		if err := r.sign(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	r := released(t)
	r.key = stranger
	if err := r.sign(t.Context()); err != nil {
		t.Errorf("before there is a list of public keys: %v", err)
	}
	if err := r.verify(t.Context()); err == nil {
		t.Error("without public keys it is believed")
	}
}

// Without a key there is no signature, and no ssh-keygen is needed.
func TestNotSigned(t *testing.T) {
	t.Setenv("PATH", "")
	r := released(t)
	check.OK(t, r.sign(t.Context()))
	if _, err := os.Stat(filepath.Join(r.out, signature)); !os.IsNotExist(err) {
		t.Errorf("there is a signature: %v", err)
	}
	r.key = filepath.Join(r.out, "key")
	if err := r.sign(t.Context()); err == nil || !strings.Contains(err.Error(), "OpenSSH") {
		t.Errorf("without ssh-keygen: %v", err)
	}
}
