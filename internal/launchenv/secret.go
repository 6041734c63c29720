package launchenv

import (
	"fmt"
	"os"
	"strings"
)

// Variables of the secret that a job's ranks have in common.
const (
	SecretVariable     = "GOCCL_SECRET"      // the secret, or "none"
	SecretFileVariable = "GOCCL_SECRET_FILE" // names a file that holds it
	shmSecretVariable  = "GOCCL_SHM_SECRET"  // the secret of ranks of goccl run, or started by hand like them
)

// CertificatesVariable names a directory with certificates, by which package transport/tcp/tls
// protects what ranks send each other.
const CertificatesVariable = "GOCCL_TLS_DIR"

// noSecret is the value of GOCCL_SECRET that lets anybody join.
const noSecret = "none"

// leastSecret is how many bytes a secret has that protects against those who try many. 16 letters
// and digits at random are more than enough.
const leastSecret = 16

// SecretRemedy says how to give a job a secret, as a part of a message.
const SecretRemedy = "on one node, make one, by\n  (umask 077; head -c 24 /dev/urandom | base64 >secret)\n" +
	"and give all nodes that file by GOCCL_SECRET_FILE, or its text by GOCCL_SECRET (in a network that you trust, GOCCL_SECRET=none lets anybody join)"

// NodesVariable is the number of nodes of a job of several launchers of goccl run.
const NodesVariable = "GOCCL_NODES"

// secret is ReadSecret, for ranks of goccl run, or started by hand like them, also of the variable
// that only they have.
func (e environment) secret(isGoccl bool) (string, error) {
	if secret := e.get(shmSecretVariable); secret != "" && isGoccl {
		if e.get(NodesVariable) == "" {
			return secret, nil // only processes of this user see what it protects
		}
		return checkSecret(secret, shmSecretVariable)
	}
	return ReadSecret(e.get)
}

// IsOpen reports whether a job has no secret because it shall have none.
func IsOpen(getenv func(string) string) bool { return getenv(SecretVariable) == noSecret }

// ReadSecret returns the secret of the job that this process belongs to, from GOCCL_SECRET or the
// file that GOCCL_SECRET_FILE names; "" if it has none.
//
// Errors are of type *Error. They do not contain the secret.
func ReadSecret(getenv func(string) string) (string, error) {
	secret, file := getenv(SecretVariable), getenv(SecretFileVariable)
	from := SecretVariable

	switch {
	case secret != "" && file != "":
		return "", &Error{Contradiction, []string{SecretVariable, SecretFileVariable}, "GOCCL_SECRET and GOCCL_SECRET_FILE are set: unset one of them"}
	case secret == noSecret:
		return "", nil
	// The file.
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", &Error{Contradiction, []string{SecretFileVariable}, fmt.Sprintf("the secret of GOCCL_SECRET_FILE: %v", err)}
		}
		secret, from = string(text), SecretFileVariable+"="+file
	case secret == "":
		return "", nil
	}

	return checkSecret(strings.TrimSpace(secret), from) // some keep the end of the line in a variable
}

// checkSecret returns a secret, unless it is too short.
func checkSecret(secret, from string) (string, error) {
	if len(secret) < leastSecret {
		return "", &Error{Contradiction, []string{SecretVariable, SecretFileVariable}, fmt.Sprintf(
			"the secret of %s has %d bytes, and could be found by trying: it needs %d or more; %s", from, len(secret), leastSecret, SecretRemedy)}
	}
	return secret, nil
}
