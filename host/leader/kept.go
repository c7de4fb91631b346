package leader

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"io/fs"

	"github.com/rs/zerolog"

	"tether/host/access"
)

// epochSize is the size, in bytes, of the epoch before the content of a document.
const epochSize = 8

var (
	errSuperseded = errors.New("another node leads")
	errShort      = errors.New("the document has no epoch")
)

// sealed is the document of a service for the leader of one epoch. It encrypts the
// document, and stores the epoch with it.
type sealed struct {
	access.Place
	seal  cipher.AEAD
	log   zerolog.Logger
	epoch int64
}

// Read implements access.Place.
func (d sealed) Read() ([]byte, error) {
	data, err := d.Place.Read()
	if err != nil {
		return nil, err
	}
	_, content, err := d.open(data)
	if err == nil && content == nil {
		err = fs.ErrNotExist
	}
	return content, err
}

// Change implements access.Place. After another node has become the leader, it changes
// nothing and returns errSuperseded. A document that cannot be decrypted, for example
// because it has another key, is replaced and lost.
func (d sealed) Change(do func([]byte) ([]byte, error)) error {
	return d.Place.Change(func(old []byte) ([]byte, error) {
		var content []byte
		if old != nil {
			epoch, before, err := d.open(old)
			if err != nil {
				d.log.Error().Err(err).Str("document", d.String()).Msg("the former leader's document cannot be read and is replaced")
			}
			if epoch > d.epoch {
				return nil, errSuperseded
			}
			content = before
		}
		content, err := do(content)
		if err != nil {
			return nil, err
		}
		text := append(binary.BigEndian.AppendUint64(nil, uint64(d.epoch)), content...)
		return d.seal.Seal(nil, nil, text, []byte("document")), nil
	})
}

// open decrypts a document. The content is nil if it is empty.
func (d sealed) open(data []byte) (epoch int64, content []byte, err error) {
	text, err := d.seal.Open(nil, nil, data, []byte("document"))
	if err == nil && len(text) < epochSize {
		err = errShort
	}
	if err != nil {
		return 0, nil, err
	}
	if len(text) > epochSize {
		content = text[epochSize:]
	}
	return int64(binary.BigEndian.Uint64(text)), content, nil
}
