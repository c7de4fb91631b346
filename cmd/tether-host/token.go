package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"strings"

	"tether/internal/lazyregexp"
	"tether/internal/textfile"
	"tether/platform/secret"
)

// credential is the host's own token in this run, and how it is shown to a person.
type credential struct {
	token string // "" if none is required
	file  string // where it is stored; "" if it is not
	made  bool   // for this run alone: the person has not seen it
}

// tokenShape matches tokens that fit into a URL unescaped; VS Code's host accepts the
// same characters.
var tokenShape = lazyregexp.New(`^[0-9A-Za-z_-]{1,512}$`)

// credential decides which token the host requires.
func (s *settings) credential() (credential, error) {
	given := 0
	for _, is := range []bool{s.token != "", s.tokenFile != "", s.withoutToken} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return credential{}, &usageError{"--token, --token-file and --without-token cannot be combined", "give at most one of them"}
	case s.withoutToken:
		return credential{}, nil
	case s.tokenFile != "":
		token, err := tokenIn(s.tokenFile)
		if err == nil {
			err = checkStrength("the token in "+s.tokenFile, token)
		}
		return credential{token: token, file: s.tokenFile}, err
	case s.token != "":
		err := checkToken("--token", s.token)
		if err == nil {
			err = checkStrength("--token", s.token)
		}
		return credential{token: s.token}, err
	}
	return credential{token: rand.Text(), made: true}, nil
}

// tokenIn reads the token in a file, and makes the file if it is missing.
func tokenIn(file string) (string, error) {
	token, err := existingToken(file)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		return token, secret.WriteFile(file, []byte(token+"\n"))
	}
	return token, err
}

// existingToken reads the token in a file.
func existingToken(file string) (string, error) {
	data, err := secret.ReadFile(file)
	if err == nil {
		data, err = textfile.Decode(data)
	}
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	return token, checkToken("the token in "+file, token)
}

// minTokenBits is the least strength of the host's own token. A correct token is accepted
// however many wrong ones came before it, so only its strength keeps others out.
const minTokenBits = 128

// Alphabets of random tokens, smallest first. Only whole alphabets are distinguished, so
// that a random token is recognised although it lacks some letters.
var tokenAlphabets = []struct {
	all  func() *regexp.Regexp
	size int
}{{lazyregexp.New(`^[0-9]*$`), 10}, {lazyregexp.New(`^([0-9a-f]*|[0-9A-F]*)$`), 16}, {lazyregexp.New(`^([0-9a-z_-]*|[0-9A-Z_-]*)$`), 32}, {tokenShape, 64}}

// checkStrength refuses a token that is too easy to guess. It counts the entropy of a
// random token with its alphabet, and less for one that repeats a few characters.
func checkStrength(what, token string) error {
	alphabet := 0
	for _, one := range tokenAlphabets {
		if alphabet = one.size; one.all().MatchString(token) {
			break
		}
	}
	distinct := map[rune]bool{}
	for _, c := range token {
		distinct[c] = true
	}
	alphabet = min(alphabet, 6*len(distinct))
	if bits := float64(len(token)) * math.Log2(float64(alphabet)); bits < minTokenBits {
		return &usageError{fmt.Sprintf("%s is too weak: about %.0f bits, but the host's own token needs %d", what, math.Floor(bits), minTokenBits),
			"let tether-host create one: give --token-file with a file that does not exist"}
	}
	return nil
}

// checkToken never repeats the token.
func checkToken(what, token string) error {
	if !tokenShape().MatchString(token) {
		return &usageError{what + " is invalid", "use 1 to 512 letters, digits, - and _"}
	}
	return nil
}
