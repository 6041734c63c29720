package ccl

import "fmt"

// The texts of names and sizes are those of ccl.yaml, also in flags and in JSON.

// MarshalText returns the name, such as "all_reduce".
func (c Collective) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText takes the name of one of Collectives; the error for another has
// the nearest.
func (c *Collective) UnmarshalText(text []byte) (err error) {
	*c, err = named("collective", string(text), Collectives())
	return err
}

// MarshalText returns the name, such as "float32".
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText takes the name of one of DTypes; the error for another has the
// nearest.
func (d *DType) UnmarshalText(text []byte) (err error) {
	*d, err = named("dtype", string(text), DTypes())
	return err
}

// MarshalText returns the name, such as "sum".
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText takes the name of one of Ops; the error for another has the
// nearest.
func (o *Op) UnmarshalText(text []byte) (err error) {
	*o, err = named("op", string(text), Ops())
	return err
}

// MarshalText returns what String does.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText takes a size as ccl.yaml writes it: "64KiB", "4096".
func (b *ByteSize) UnmarshalText(text []byte) (err error) {
	*b, err = parseByteSize(string(text))
	return err
}

// named returns the value of a name.
func named[T any](what, name string, values []T) (v T, err error) {
	names := make([]string, len(values))
	for i := range values {
		names[i] = fmt.Sprint(values[i])
		if names[i] == name {
			return values[i], nil
		}
	}
	return v, fmt.Errorf("unknown %s %s%s; use one of %s", what, quote(name), didYouMean(name, names), list(names))
}
