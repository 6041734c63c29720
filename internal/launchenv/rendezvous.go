package launchenv

import (
	"fmt"
	"path/filepath"
)

// address is where rank 0 listens, as it tells the others of its node.
type address struct {
	Version int    `json:"version"` // 1
	Address string `json:"address"`
}

// addressFile names the file of an attempt to join, beside that of the rank's result; "" if the
// launcher has named none.
func addressFile(getenv func(string) string, attempt int) string {
	result := getenv(ResultVariable)
	if result == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(result), fmt.Sprintf("address-%d", attempt))
}

// SendAddress tells the other ranks of a launcher, all of this node, where rank 0 listens.
func SendAddress(getenv func(string) string, attempt int, at string) error {
	return replace(addressFile(getenv, attempt), address{1, at})
}

// ReadAddress returns where rank 0 listens, "" if it has not told.
func ReadAddress(getenv func(string) string, attempt int) (string, error) {
	a, err := readFile[address](addressFile(getenv, attempt), "the address of rank 0")
	if a == nil {
		return "", err
	}
	return a.Address, nil
}
