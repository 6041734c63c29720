package ccl

import "github.com/goccl/goccl/internal/text"

// Names have the same text in ccl.yaml, in flags and in JSON.

// MarshalText returns the name, such as "all_reduce".
func (c Collective) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses the name of one of Collectives. The error for an unknown name suggests the
// nearest one.
func (c *Collective) UnmarshalText(name []byte) (err error) {
	*c, err = text.Named("collective", string(name), Collectives())
	return err
}

// MarshalText returns the name, such as "float32".
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText takes the name of one of DTypes; the error for another has the
// nearest.
func (d *DType) UnmarshalText(name []byte) (err error) {
	*d, err = text.Named("dtype", string(name), DTypes())
	return err
}

// MarshalText returns the name, such as "sum".
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes the name of one of Ops; the error for another has the
// nearest.
func (o *Op) UnmarshalText(name []byte) (err error) {
	*o, err = text.Named("op", string(name), Ops())
	return err
}
