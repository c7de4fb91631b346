package local

// The places where secrets are kept, see [SecretStore].
const (
	StoreKeyring = "keyring"
	StoreFile    = "file"
)
