package main

import (
	"cmp"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tether/host"
	"tether/host/access"
	"tether/host/devices"
	"tether/host/rights"
	"tether/platform/secret"
)

// pairingTTL is how long a pairing token is valid by default.
const pairingTTL = time.Hour

// keyPath returns the path of the host's key, next to the tokens.
func keyPath(tokens string) string { return filepath.Join(filepath.Dir(tokens), "host-key.pem") }

// openDevices lets machines pair by their keys. It makes the host's own key if that is
// missing. It must be called after openTokens; without tokens it returns nil. It reports
// each paired machine on stderr.
func (s *settings) openDevices(o *host.Options, stderr io.Writer) (*devices.Door, error) {
	tokens, ok := o.Access.(*access.Tokens)
	if !ok {
		return nil, nil
	}
	path, err := tokensPath(s.tokens)
	if err != nil {
		return nil, err
	}
	key, err := hostKey(keyPath(path))
	if err != nil {
		return nil, err
	}
	var nodes devices.Nodes
	if s.node != nil {
		nodes = s.node
	}
	door, err := devices.New(devices.Options{Key: key, Tokens: tokens, Pending: s.places(path).pending, Nodes: nodes, Logger: o.Logger,
		Audit: func(ev rights.AuditEvent) {
			if ev.Type == devices.AuditPaired {
				fmt.Fprintf(stderr, "%s has paired with this host; undo with: tether-host token revoke %s\n", printable(ev.Name), printable(ev.Name))
			}
			if o.Audit != nil {
				o.Audit(ev)
			}
		}})
	if err == nil {
		o.Access = devices.Both(tokens, door)
	}
	return door, err
}

// keyBlock is the type of a PEM block with a key in PKCS #8.
const keyBlock = "PRIVATE KEY"

// hostKey reads the host's key, or makes one.
func hostKey(path string) (ed25519.PrivateKey, error) {
	if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
		if err := secret.Dir(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("host key: %w", err)
		}
	}
	data, err := secret.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		return key, secret.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}))
	}
	if err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	wrong := fmt.Errorf("host key: %s holds no Ed25519 key; restore the right key, or remove the file and pair all machines again", path)
	block, _ := pem.Decode(data)
	if block == nil || block.Type != keyBlock {
		return nil, wrong
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, wrong
	}
	return key, nil
}

func pendingCommand(stdout io.Writer) *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use: "pending", Short: "list machines that wait for approval", Args: exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := placesOf(c.Context(), path)
			if err != nil {
				return err
			}
			all, err := devices.ReadPending(at.pending)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(stdout, map[string]any{"schema_version": 1, "pending": append([]devices.Pending{}, all...)})
			}
			w := newTable(stdout, "CODE\tNAME\tFROM\tEXPIRES\tKEY")
			for _, p := range all {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", p.Code, p.Name, p.Remote, p.Expires.Local().Format("15:04"), p.Fingerprint)
			}
			return w.Flush()
		},
	}
	tokensFlag(c.Flags(), &path)
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// mayApprove returns an error unless a machine waits with a code, under a name that no
// person has. owner is the name of the person to whom the machine is to belong. name is
// "" for the machine's name for itself.
func (at places) mayApprove(tokens *access.Tokens, code, name, owner string) error {
	people, err := access.OpenPeople(at.people, tokens)
	if err != nil {
		return err
	}
	one, err := devices.Waiting(at.pending, code)
	if err != nil {
		return err
	}
	return people.MayName(cmp.Or(name, one.Name), rights.RoleMachine, owner)
}

func approveCommand(stdout io.Writer) *cobra.Command {
	var path, name, owner string
	c := &cobra.Command{
		Use: "approve CODE", Short: "approve the machine that shows this code",
		Long: `Lets the machine that waits with this code lend terminals. tether pair shows the code there.
Take it from the person at the machine, not from tether-host pending: if it is the same on both
sides, nobody reads or changes what they send.

tether-host token revoke NAME ends it.`,
		Args: exactly(1, "the code that tether pair shows"),
		RunE: func(c *cobra.Command, args []string) error {
			at, err := placesOf(c.Context(), path)
			if err != nil {
				return err
			}
			tokens, err := access.Open(at.tokens)
			if err != nil {
				return err
			}
			var info access.Info
			err = ownedBy(tokens, path, owner, func(string) error { return at.mayApprove(tokens, args[0], name, owner) })
			if err == nil {
				info, err = devices.Approve(at.pending, tokens, args[0], name)
			}
			switch {
			case errors.Is(err, devices.ErrNoPairing):
				return fmt.Errorf("%w in %s; a code is valid for ten minutes (tether-host pending lists them), and --tokens must be that of the host", err, at.pending)
			case errors.Is(err, access.ErrTakenName):
				return fmt.Errorf("%w: give another name with --name, or first: tether-host token revoke NAME", err)
			case err != nil:
				return err
			}
			fmt.Fprintf(stdout, "%s may lend terminals (%s)\n", info.Principal, info.ID)
			return nil
		},
	}
	tokensFlag(c.Flags(), &path)
	c.Flags().StringVar(&name, "name", "", "call the machine `NAME` instead of its own name")
	c.Flags().StringVar(&owner, "owner", "", "the `PERSON` to whom the machine belongs; default: the administrator")
	return c
}
