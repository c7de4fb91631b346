// Package textfile decodes text files that people write with any editor.
//
//	text, err := textfile.Decode(data)
package textfile

import (
	"bytes"
	"errors"
)

// Mark is the byte order mark with which PowerShell 5.1 and older editors of Windows
// begin UTF-8.
const Mark = "\xef\xbb\xbf"

// Decode returns the text without its byte order mark. UTF-16, which PowerShell 5.1
// writes with >, is an error that says what to do. The result shares memory with data.
func Decode(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, errors.New("the file is UTF-16: save it as UTF-8")
	}
	return bytes.TrimPrefix(data, []byte(Mark)), nil
}
