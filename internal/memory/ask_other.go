//go:build !unix || solaris || aix

package memory

import "errors"

// most is more memory than any machine has today.
const most = 1 << 40

// ask returns an error if no machine has n bytes.
func ask(n int) error {
	if uint64(n) > most {
		return errors.New("more than any machine has")
	}
	return nil
}
