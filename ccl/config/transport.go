package config

import (
	"slices"

	"github.com/goccl/goccl/internal/strictyaml"
	"github.com/goccl/goccl/internal/text"
	"github.com/goccl/goccl/transport"
)

// CheckTransport returns an error if option, or if that is empty the environment variable
// GOCCL_TRANSPORT, names a transport that does not exist: an *Error around an
// *transport.InvalidBackendError.
//
// It does not check whether the program links the transport: the caller, which connects the ranks,
// does. CheckTransport needs no file, so that this mistake can be reported first.
func CheckTransport(option string, getenv func(string) string) error {
	if option != "" {
		return unknownTransport(option, &Error{File: "option", Key: "defaults.transport"})
	}
	return unknownTransport(getenv("GOCCL_TRANSPORT"), &Error{File: "environment", Key: "GOCCL_TRANSPORT"})
}

// unknownTransport returns nil if name is "", "auto" or a transport's; otherwise mistake, which
// says where the name is, with what is wrong.
func unknownTransport(name string, mistake *Error) error {
	if name == "" || name == auto || slices.Contains(transport.Names(), name) {
		return nil
	}
	linked := []string{auto}
	for _, p := range transport.Providers() {
		linked = append(linked, p.Name)
	}
	_, err := text.Named("transport", name, linked, nil)
	mistake.Message = err.Error()
	mistake.Err = &transport.InvalidBackendError{Requested: name, Available: linked}
	return mistake
}

// readTransport reads defaults.transport.
func readTransport(n strictyaml.Node) (string, error) {
	name, err := n.Text()
	if err != nil {
		return "", err
	}
	mistake, _ := n.Errorf("").(*Error) //nolint:errorlint // made by Parse
	return name, unknownTransport(name, mistake)
}
