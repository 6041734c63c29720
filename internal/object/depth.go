package object

import (
	"encoding"
	"encoding/gob"
	"fmt"
	"reflect"
)

// maxObjectDepth bounds the nesting of values in an object. Package gob recurses into
// each level, and a stack overflow ends the process.
const maxObjectDepth = 100_000

// checkDepth returns an error if v contains itself or is nested too deeply for gob. It
// skips types whose depth is bounded.
func checkDepth(v reflect.Value) error {
	d := depth{deep: map[reflect.Type]bool{}, ended: map[reference]int{}}
	_, err := d.of(v, 0)
	return err
}

// depth walks the values that gob would encode.
type depth struct {
	deep  map[reflect.Type]bool // whether the depth of a type's values is unbounded
	ended map[reference]int     // how deep things behind pointers are; inside: the walk is in it
}

// reference is what a pointer, map or slice refers to.
type reference struct {
	at  uintptr
	n   int
	typ reflect.Type
}

const inside = -1

// of returns the depth of v below level at of the object.
func (d *depth) of(v reflect.Value, at int) (deepest int, err error) {
	if at > maxObjectDepth {
		return 0, fmt.Errorf("it is more than %d values deep", maxObjectDepth)
	}
	if !v.IsValid() || !d.isDeep(v.Type(), nil) {
		return 0, nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		if v.IsNil() {
			return 0, nil
		}
		p := reference{v.Pointer(), 0, v.Type()}
		if v.Kind() == reflect.Slice {
			p.n = v.Len()
		}
		known, ok := d.ended[p]
		switch {
		case ok && known == inside:
			return 0, fmt.Errorf("a %v in it holds itself, and gob cannot write that", v.Type())
		case ok:
			if at+known > maxObjectDepth {
				return 0, fmt.Errorf("it is more than %d values deep", maxObjectDepth)
			}
			return known, nil
		}
		d.ended[p] = inside
		defer func() { d.ended[p] = deepest }()
	}
	see := func(part reflect.Value) {
		if err == nil {
			var n int
			n, err = d.of(part, at+1)
			deepest = max(deepest, n+1)
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		see(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			see(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			see(it.Key())
			see(it.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				see(v.Field(i))
			}
		}
	}
	return deepest, err
}

var (
	gobEncoder      = reflect.TypeFor[gob.GobEncoder]()
	binaryMarshaler = reflect.TypeFor[encoding.BinaryMarshaler]()
)

// isDeep reports whether the depth of a type's values is unbounded: the type contains an
// interface or itself. within are the enclosing types. gob does not recurse into types
// that encode themselves.
func (d *depth) isDeep(t reflect.Type, within []reflect.Type) (deep bool) {
	if known, ok := d.deep[t]; ok {
		return known
	}
	for _, outer := range within {
		if outer == t {
			return true
		}
	}
	for _, own := range [...]reflect.Type{t, reflect.PointerTo(t)} {
		if own.Implements(gobEncoder) || own.Implements(binaryMarshaler) {
			return false
		}
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Interface:
		deep = true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		deep = d.isDeep(t.Elem(), within)
	case reflect.Map:
		deep = d.isDeep(t.Key(), within) || d.isDeep(t.Elem(), within)
	case reflect.Struct:
		for i := range t.NumField() {
			deep = deep || t.Field(i).IsExported() && d.isDeep(t.Field(i).Type, within)
		}
	}
	if deep || len(within) == 1 {
		d.deep[t] = deep
	}
	return deep
}
