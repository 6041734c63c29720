package launchenv

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longest bounds the length of a key.
const longest = 64

// key makes a key from the launcher's name and the parts; keys differ if any part
// does. If the parts are short and plain the key consists of them, otherwise it ends with
// their hash.
func key(launcher string, parts ...string) string {
	text := launcher + "-" + strings.Join(parts, "-")
	if strings.Count(text, "-") == len(parts) && isPlain(text) { // with more, it is ambiguous
		return text
	}
	return hashed(text, parts)
}

// keyOfName returns the name itself if it is a valid key.
func keyOfName(name string) string {
	if isPlain(name) {
		return name
	}
	return hashed(name, []string{name})
}

// isPlain reports whether s is a valid key and file name.
func isPlain(s string) bool {
	return len(s) <= longest && s[0] != '.' && strings.IndexFunc(s, isOdd) < 0
}

func isOdd(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
}

// hashed returns a key: text, made valid and cut, and a hash of the parts.
func hashed(text string, parts []string) string {
	text = strings.Map(func(r rune) rune {
		if isOdd(r) {
			return '_'
		}
		return r
	}, text)
	if text[0] == '.' {
		text = "_" + text[1:]
	}
	hash := digest(parts...)
	return text[:min(len(text), longest-1-len(hash))] + "-" + hash
}

// digest is a short hash of the parts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0}) // separates the parts: variables contain no 0
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
