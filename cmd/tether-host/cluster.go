package main

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"tether/host"
	"tether/host/access"
	"tether/host/cluster"
	"tether/host/leader"
	"tether/host/rights"
	"tether/platform/secret"
)

// clusterSettings has the flags of a host that is one of several nodes.
type clusterSettings struct {
	nats, creds, ca, name string
	rightsGrace           time.Duration
}

const (
	defaultRightsGrace = time.Minute
	defaultCluster     = "main"
)

func (c *clusterSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&c.nats, "nats", "", "be a node of a cluster over these NATS servers: `URLS`, divided by commas")
	f.StringVar(&c.creds, "nats-creds", "", "`FILE` with credentials for the NATS servers")
	f.StringVar(&c.ca, "nats-ca", "", "`FILE` with the certificates of the NATS servers' authority, PEM; default: those of the system")
	f.DurationVar(&c.rightsGrace, "rights-grace", defaultRightsGrace, "how long a node that does not reach NATS continues to serve connected clients, with the rights that it knows; 0s: two seconds")
	f.StringVar(&c.name, "cluster", defaultCluster, "`NAME` of the cluster, if several share the NATS servers")
}

func (c *clusterSettings) check(withoutToken bool) error {
	switch {
	case c.nats == "" && (c.creds != "" || c.ca != ""):
		return &usageError{"--nats-creds and --nats-ca need --nats", "add --nats URLS"}
	case c.nats == "" && c.rightsGrace != defaultRightsGrace:
		return &usageError{"--rights-grace needs --nats", "add --nats URLS"}
	case c.nats == "" && c.name != defaultCluster:
		return &usageError{"--cluster needs --nats", "add --nats URLS"}
	case c.rightsGrace != 0 && (c.rightsGrace < cluster.MinRightsGrace || c.rightsGrace > 24*time.Hour):
		return &usageError{fmt.Sprintf("--rights-grace is %v", c.rightsGrace), "use 2s to 24h, or 0s, which is the same as 2s"}
	case c.nats != "" && withoutToken:
		return &usageError{"--nats and --without-token cannot be combined", "omit --without-token"}
	}
	return nil
}

// options returns the options of a node with the host's key, or, without a key, of a
// command.
func (c *clusterSettings) options(key ed25519.PublicKey) cluster.Options {
	return cluster.Options{Servers: c.nats, Creds: c.creds, CA: c.ca, Name: c.name, HostKey: key, RightsGrace: max(c.rightsGrace, cluster.MinRightsGrace)}
}

// clusterFile is a file next to that of the tokens. It tells commands that the host keeps
// its tokens in a cluster, and in which.
type clusterFile struct {
	Version int    `json:"version"`
	NATS    string `json:"nats"`
	Creds   string `json:"creds,omitempty"` // absolute
	CA      string `json:"ca,omitempty"`    // absolute
	Cluster string `json:"cluster"`
}

const clusterVersion = 1

// joinCluster makes the process a node, if --nats is given, and records where commands
// find the tokens. It must be called before openTokens. The returned function leaves the
// cluster.
func (s *settings) joinCluster(ctx context.Context, o *host.Options) (leave func(), err error) {
	path, err := tokensPath(s.tokens)
	switch {
	case s.cluster.nats == "" && (err != nil || s.withoutToken):
		return func() {}, nil
	case err != nil:
		return nil, err
	case s.cluster.nats == "":
		if err := os.Remove(besideTokens(path, "cluster.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		return func() {}, nil
	}
	key, err := hostKey(keyPath(path))
	if err != nil {
		return nil, err
	}
	join := s.cluster.options(key.Public().(ed25519.PublicKey))
	join.Logger = o.Logger
	n, err := cluster.Join(ctx, join)
	if err != nil {
		return nil, joinError(err)
	}
	if err := s.cluster.note(path); err != nil {
		n.Close()
		return nil, err
	}
	named := o.Logger.With().Str("node", n.ID()).Logger()
	s.node, o.Nodes, o.Logger = n, n, &named
	return n.Close, nil
}

// note writes the cluster file.
func (c *clusterSettings) note(tokens string) (err error) {
	f := clusterFile{Version: clusterVersion, NATS: c.nats, Cluster: c.name, Creds: c.creds, CA: c.ca}
	for _, path := range []*string{&f.Creds, &f.CA} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	if err == nil {
		err = secret.WriteJSON(besideTokens(tokens, "cluster.json"), f)
	}
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// joinError turns the reason why a node does not join into a message with a remedy.
func joinError(err error) error {
	if why, ok := errors.AsType[*cluster.JoinError](err); ok {
		return &usageError{why.Message, why.Hint}
	}
	return fmt.Errorf("cluster: %w", err)
}

// runNode connects the host with the other nodes until the returned function is called,
// which waits for the end.
func (s *settings) runNode(ctx context.Context, h *host.Host, log *zerolog.Logger) (stop func()) {
	if s.node == nil {
		return func() {}
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var run sync.WaitGroup
	run.Go(func() {
		if err := s.node.Run(running, h); err != nil {
			log.Error().Err(err).Msg("cluster")
		}
	})
	left := context.AfterFunc(ctx, s.node.Leave) // before machines are disconnected
	return func() { left(); cancel(); run.Wait() }
}

// places says where the documents are that commands and the host share.
type places struct{ tokens, people, pending access.Place }

// places returns the host's places: in its cluster, or files next to that of the tokens.
func (s *settings) places(tokens string) places {
	if s.node != nil {
		return placesBy(s.node.Place)
	}
	return filesAt(tokens)
}

func placesBy(place func(name string) access.Place) places {
	return places{place("tokens"), place("people"), place("pending")}
}

func filesAt(tokens string) places {
	return places{access.File(tokens), access.File(besideTokens(tokens, "people.json")), access.OwnFile(besideTokens(tokens, "pending.json"))}
}

// placesOf returns, for a command, the places of the host with that file of tokens.
func placesOf(ctx context.Context, given string) (places, error) {
	path, err := tokensPath(given)
	if err != nil {
		return places{}, err
	}
	var f clusterFile
	err = secret.ReadJSON(besideTokens(path, "cluster.json"), clusterVersion, &f)
	if errors.Is(err, fs.ErrNotExist) {
		return filesAt(path), nil
	}
	if err != nil {
		return places{}, fmt.Errorf("cluster: %w", err)
	}
	c := clusterSettings{nats: f.NATS, creds: f.Creds, ca: f.CA, name: f.Cluster}
	docs, err := cluster.Documents(ctx, c.options(nil))
	if err != nil {
		return places{}, joinError(err)
	}
	return placesBy(docs), nil
}

// owners returns the owners of clientIds: in the host's cluster, or in a file next to
// that of the tokens.
func (s *settings) owners(tokens string, t *access.Tokens) (rights.Owners, error) {
	if s.node != nil {
		return s.node.Owners(t), nil
	}
	return access.OpenOwners(besideTokens(tokens, "clients.jsonl"), t)
}

// leader returns what the nodes of this host share for a service that one of them does
// for all. path is the file of tokens, and document the name of the document that the
// leader keeps.
func (s *settings) leader(path, about, document string, log *zerolog.Logger) (leader.Shared, error) {
	secret, err := hostKey(keyPath(path))
	if err != nil {
		return leader.Shared{}, err
	}
	key, err := hkdf.Key(sha256.New, secret.Seed(), nil, "tether-host "+about, 32)
	return leader.Shared{Nodes: s.node, Place: s.node.Place(document), Key: key, Logger: log}, err
}
