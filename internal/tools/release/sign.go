package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A release is signed as OpenSSH signs files
// (https://cvsweb.openbsd.org/src/usr.bin/ssh/PROTOCOL.sshsig): who verifies it has
// ssh-keygen already. Ed25519 alone is taken, whose signatures have nothing random in
// them, so that a signed release, too, is the same in each build.
const (
	keyVar    = "RELEASE_KEY"          // environment variable that names the private key
	signer    = "tether-release"       // the signer's name, and the purpose of the signature
	signers   = "docs/release.signers" // public keys, as ssh-keygen -Y verify reads them
	signature = sumsName + ".sig"
)

// sign signs the list of checksums, if there is a key, and makes sure that the public
// keys verify it.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		fmt.Printf("== not signed: neither -key nor %s names a key; docs/PLATFORMS.md says how to make one\n", keyVar)
		return nil
	}
	kind, err := sshKeygen(ctx, "", "-l", "-f", r.key)
	if err != nil {
		return err
	}
	// Nothing else will do: before it stands a comment, which may say anything, and
	// ED25519-SK counts its signatures.
	if !strings.HasSuffix(kind, " (ED25519)") {
		return fmt.Errorf("%s is no Ed25519 key, but %s", r.key, kind)
	}
	sums := filepath.Join(r.out, sumsName)
	if _, err := sshKeygen(ctx, "", "-Y", "sign", "-f", r.key, "-n", signer, sums); err != nil {
		return err
	}
	if _, err := os.Stat(r.signers); errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("== signed, but nobody can verify it: %s is not there\n", r.signers)
		return nil
	}
	return r.verify(ctx)
}

// verify does the same check as users.
func (r *release) verify(ctx context.Context) error {
	_, err := sshKeygen(ctx, filepath.Join(r.out, sumsName), "-Y", "verify", "-f", r.signers, "-I", signer, "-n", signer, "-s", filepath.Join(r.out, signature))
	return err
}

// sshKeygen runs it with a file as its input and returns its output. It asks for a
// passphrase on the terminal itself.
func sshKeygen(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ssh-keygen", args...)
	if input != "" {
		f, err := os.Open(input)
		if err != nil {
			return "", err
		}
		defer f.Close()
		cmd.Stdin = f
	}
	out, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(out))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("OpenSSH signs releases, and is not installed: %w", err)
	case err != nil:
		return "", fmt.Errorf("ssh-keygen %s: %w: %s", strings.Join(args[:2], " "), err, said)
	}
	return said, nil
}
