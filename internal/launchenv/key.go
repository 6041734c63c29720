package launchenv

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longest is the length of the longest key.
const longest = 64

// key makes a key of a launcher's name for its jobs, which differ if any part
// does. It can be read where the parts are short and plain; a hash of all of
// them follows where they are not.
func key(launcher string, parts ...string) string {
	plain := launcher
	for _, p := range parts {
		if strings.Contains(p, "-") {
			plain = "" // where the part ends would be anyone's guess
			break
		}
		plain += "-" + p
	}
	if plain != "" && isPlain(plain) {
		return plain
	}
	return hashed(launcher+"-"+strings.Join(parts, "-"), parts)
}

// keyOfName is the name itself, if it can be.
func keyOfName(name string) string {
	if isPlain(name) {
		return name
	}
	return hashed(name, []string{name})
}

// isPlain reports whether s can be a key, and a file's name.
func isPlain(s string) bool {
	return len(s) <= longest && s[0] != '.' && strings.IndexFunc(s, isOdd) < 0
}

func isOdd(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
}

// hashed returns as much of text as can be read in a key, and a hash of the parts.
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
		h.Write([]byte{0}) // no variable holds it
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
