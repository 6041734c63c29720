//go:build !unix || solaris || aix

package memory

import "errors"

// most is what no machine has at present.
const most = 1 << 40

// ask is an error if there is no machine with n bytes.
func ask(n int) error {
	if uint64(n) > most {
		return errors.New("more than any machine has")
	}
	return nil
}
