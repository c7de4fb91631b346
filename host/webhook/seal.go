package webhook

import (
	"crypto/aes"
	"crypto/cipher"
)

// seal encrypts data with a key of 32 bytes (AES-256-GCM): whoever runs NATS must not be able to sign events.
func seal(key, data []byte) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, data, nil), nil
}

// unseal returns the data that seal has encrypted with the same key.
func unseal(key, sealed []byte) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, nil, sealed, nil)
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
