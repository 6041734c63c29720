// Package jsonfloat encodes values as JSON that may have infinities and NaN, which JSON does not
// have.
//
// # Model
//
// Such a float is the string "Infinity", "-Infinity" or "NaN" in the text. Decode reads these
// strings where the type has a float. All other values are those of encoding/json.
// The errors wrap those of encoding/json, in words of their own; there is one for a tag by which a
// float would be a string already.
package jsonfloat

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
)

// Other readers of JSON use these strings as well. They are read back where the program has floats.
// encoding/json decides where floats are: it encodes and decodes numbers that stand in for these
// values and occur nowhere else in the text.

type namedFloat struct {
	value float64
	text  string
}

// nonFinite are the values that JSON does not have, and their strings.
var nonFinite = []namedFloat{{math.Inf(1), `"Infinity"`}, {math.Inf(-1), `"-Infinity"`}, {math.NaN(), `"NaN"`}}

// standIns returns a number for each value of nonFinite that text does not contain. A float32 has
// them exactly.
func standIns(text []byte) (numbers []float64) {
	for n := 1 << 22; len(numbers) < len(nonFinite); n++ {
		if !bytes.Contains(text, strconv.AppendInt(nil, int64(n), 10)) {
			numbers = append(numbers, float64(n))
		}
	}
	return numbers
}

// digits returns a number of standIns as encoding/json writes it.
func digits(n float64) []byte { return strconv.AppendFloat(nil, n, 'f', -1, 64) }

func isFloat(k reflect.Kind) bool { return k == reflect.Float32 || k == reflect.Float64 }

// Encode returns the state as JSON. Its errors are those of json.Marshal, one for a field that is
// not finite and has the option string in its tag, and a panic of a method of the state.
func Encode(state any) (text []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("encoding a %T panicked: %v", state, v)
		}
		err = explain(err)
	}()
	text, err = json.Marshal(state)
	if unsupported, ok := errors.AsType[*json.UnsupportedValueError](err); !ok || !isFloat(unsupported.Value.Kind()) {
		return text, err
	}

	encode := func(numbers []float64) ([]byte, error) {
		return json.Marshal(replaceFloats(reflect.ValueOf(state), func(x float64) float64 {
			if i := slices.IndexFunc(nonFinite, func(n namedFloat) bool { return n.value == x || math.IsNaN(n.value) && math.IsNaN(x) }); i >= 0 {
				return numbers[i]
			}
			return x
		}).Interface())
	}

	if text, err = encode(make([]float64, len(nonFinite))); err != nil {
		return nil, err
	}
	numbers := standIns(text)
	if text, err = encode(numbers); err != nil {
		return nil, err
	}

	for i, n := range numbers {
		if bytes.Contains(text, fmt.Appendf(nil, "%q", digits(n))) {
			return nil, fmt.Errorf("a field of the state with the option string of its tag is %v, which cannot be read back: leave the option out", nonFinite[i].value)
		}
		text = bytes.ReplaceAll(text, digits(n), []byte(nonFinite[i].text))
	}
	return text, nil
}

// Decode returns a new value of a type from the JSON of Encode. A panic of a method of the value is
// an error.
func Decode(text []byte, t reflect.Type) (read reflect.Value, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("decoding a %v panicked: %v", t, v)
		}
		err = explain(err)
	}()

	numbers, hasNonFinite := standIns(text), false
	for {
		read = reflect.New(t)
		err = json.Unmarshal(text, read.Interface())
		if err == nil && !hasNonFinite {
			return read.Elem(), nil
		}

		if err == nil {
			return replaceFloats(read.Elem(), func(x float64) float64 {
				if i := slices.Index(numbers, x); i >= 0 {
					return nonFinite[i].value
				}
				return x
			}), nil
		}

		i, end := stringForFloat(text, err)
		if i < 0 {
			return read, err
		}
		hasNonFinite = true
		text = replaceStrings(text, end-len(nonFinite[i].text), numbers)
	}
}

// explained is an error of encoding/json in other words.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// explain returns an error of encoding/json with what to do about it, and others as they are.
func explain(err error) error {
	if e, ok := errors.AsType[*json.UnsupportedTypeError](err); ok {
		return &explained{fmt.Sprintf("it has a %v, which JSON does not have: leave the field out, by the tag `json:\"-\"`, or give its type the methods MarshalJSON and UnmarshalJSON", e.Type), err}
	}
	if e, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		return &explained{fmt.Sprintf("it has a value that JSON does not have (%s): leave the field out, by the tag `json:\"-\"`", e.Str), err}
	}

	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "it"
		if e.Field != "" {
			what = fmt.Sprintf("its field %q", e.Field)
		}
		return &explained{fmt.Sprintf("%s is a %s, and the program reads it into a value of type %v: pass a pointer to the type that was written", what, e.Value, e.Type), err}
	}
	return err
}

// floatList matches floats and values of nonFinite with commas between them.
var floatList = regexp.MustCompile(`^(?:[ \t\r\n,]*(?:[-+.0-9eE]+|null|"-?Infinity"|"NaN"))+`)

// replaceStrings returns text with numbers in place of the value of nonFinite at a position, and of
// those that follow it in a list: all elements of the list are floats then, and each would cost
// another pass over the text.
func replaceStrings(text []byte, at int, numbers []float64) []byte {
	list := floatList.Find(text[at:])
	if rest := bytes.TrimLeft(text[at+len(list):], " \t\r\n"); bytes.HasPrefix(rest, []byte(":")) {
		list = list[:bytes.LastIndexByte(list, ',')] // the last string is a key
	}
	end := at + len(list)
	for i, n := range nonFinite {
		list = bytes.ReplaceAll(list, []byte(n.text), digits(numbers[i]))
	}
	return slices.Concat(text[:at], list, text[end:])
}

// stringForFloat returns the index in nonFinite of the string that text has where a float is
// expected, which err says, and the end of the string. The index is -1 if err says something else.
func stringForFloat(text []byte, err error) (i, end int) {
	mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok || !isFloat(mistyped.Type.Kind()) || mistyped.Offset > int64(len(text)) {
		return -1, 0
	}
	end = int(mistyped.Offset)
	return slices.IndexFunc(nonFinite, func(n namedFloat) bool { return bytes.HasSuffix(text[:end], []byte(n.text)) }), end
}

// floatReplacer copies a value with other floats. What leads to the same memory does so in the
// copy.
type floatReplacer struct {
	replace func(float64) float64
	copies  map[container]reflect.Value
}

// container identifies a pointer, map or slice.
type container struct {
	reflect.Type
	at     uintptr
	length int
}

// replaceFloats returns v with other floats: a copy, as far as it may have floats that
// encoding/json sees.
func replaceFloats(v reflect.Value, replace func(float64) float64) reflect.Value {
	return (&floatReplacer{replace, map[container]reflect.Value{}}).copyOf(v)
}

func (f *floatReplacer) copyOf(v reflect.Value) reflect.Value {
	if !v.IsValid() || encodesItself(v.Type()) {
		return v
	}

	made := reflect.New(v.Type()).Elem()
	made.Set(v)

	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		made.SetFloat(f.replace(v.Float()))
	case reflect.Struct:
		f.copyFields(made, v)
	// Elements, and what is behind a pointer.
	case reflect.Array:
		for i := range v.Len() {
			made.Index(i).Set(f.copyOf(v.Index(i)))
		}
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice:
		if !v.IsNil() {
			f.copyBehind(made, v)
		}
	}
	return made
}

// copyFields sets the fields of made, a copy of v, which encoding/json sees: also those of a struct
// that is embedded and not exported.
func (f *floatReplacer) copyFields(made, v reflect.Value) {
	for i := range v.NumField() {
		switch field := v.Type().Field(i); {
		case field.IsExported():
			made.Field(i).Set(f.copyOf(v.Field(i)))
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			f.copyFields(made.Field(i), v.Field(i))
		}
	}
}

// copyBehind makes made the copy of v, which is not nil, and of what v leads to.
func (f *floatReplacer) copyBehind(made, v reflect.Value) {
	t := v.Type()
	if v.Kind() == reflect.Interface {
		made.Set(f.copyOf(v.Elem()))
		return
	}

	c := container{Type: t, at: v.Pointer()}
	if v.Kind() != reflect.Pointer {
		c.length = v.Len()
	}
	if before, ok := f.copies[c]; ok {
		made.Set(before)
		return
	}
	f.copies[c] = made

	switch v.Kind() {
	case reflect.Pointer:
		made.Set(reflect.New(t.Elem()).Convert(t))
		made.Elem().Set(f.copyOf(v.Elem()))
	case reflect.Map:
		made.Set(reflect.MakeMapWithSize(t, v.Len()))
		for key, value := range v.Seq2() {
			made.SetMapIndex(key, f.copyOf(value))
		}

	case reflect.Slice:
		made.Set(reflect.MakeSlice(t, v.Len(), v.Len()))
		for i := range v.Len() {
			made.Index(i).Set(f.copyOf(v.Index(i)))
		}
	}
}

// encodesItself reports whether values of a type, or pointers to them, have methods that encode or
// decode them.
func encodesItself(t reflect.Type) bool {
	return slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}, func(method reflect.Type) bool { return t.Implements(method) || reflect.PointerTo(t).Implements(method) })
}
