//! The reader as one of serde's.

use super::Error;
use super::reader::{Reader, Token};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer as _, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;

impl<'de> Reader<'de> {
    /// Reads a value of any type. Only with `FLOATS` are numbers read that are
    /// no whole ones: who never asks for them does not carry the code.
    fn value<V: Visitor<'de>, const FLOATS: bool>(
        &mut self,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.token()? {
            Token::Null => visitor.visit_unit(),
            Token::Bool(truth) => visitor.visit_bool(truth),
            Token::Unsigned(number) => visitor.visit_u64(number),
            Token::Signed(number) => visitor.visit_i64(number),
            Token::Fraction(number) if FLOATS => match number.parse::<f64>() {
                Ok(number) if number.is_finite() => visitor.visit_f64(number),
                _ => Err(self.fault("too large a number")),
            },
            Token::Fraction(_) => Err(Error::invalid_type(Unexpected::Float(0.0), &visitor)),
            Token::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Token::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Token::Array => {
                self.enter()?;
                let mut elements = Elements { reader: self, close: b']', first: true };
                let value = visitor.visit_seq(&mut elements)?;
                elements.finish().map(|()| value)
            }
            Token::Object => {
                self.enter()?;
                let mut elements = Elements { reader: self, close: b'}', first: true };
                let value = visitor.visit_map(&mut elements)?;
                elements.finish().map(|()| value)
            }
        }
    }
}

macro_rules! without_floats {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $type,)*
            visitor: V,
        ) -> Result<V::Value, Error> {
            $(let _ = $argument;)*
            self.value::<V, false>(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.value::<V, true>(visitor)
    }

    without_floats! {
        deserialize_bool() deserialize_char() deserialize_str() deserialize_string()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_bytes() deserialize_byte_buf() deserialize_unit() deserialize_seq()
        deserialize_map() deserialize_identifier()
        deserialize_unit_struct(_name: &'static str)
        deserialize_tuple(_length: usize)
        deserialize_tuple_struct(_name: &'static str, _length: usize)
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str])
    }

    forward_to_deserialize_any! { f32 f64 i128 u128 }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.peek() == Some(b'n') {
            self.literal("null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.peek() {
            Some(b'"') => {
                let variant = self.string()?;
                visitor.visit_enum(de::IntoDeserializer::<Error>::into_deserializer(variant))
            }
            // One field: its name is the variant.
            Some(b'{') => {
                self.enter()?;
                let value = visitor.visit_enum(Tagged(self))?;
                if self.peek() != Some(b'}') {
                    return Err(self.fault("more than one variant"));
                }
                self.step();
                self.leave();
                Ok(value)
            }
            _ => self.value::<V, false>(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.skip()?;
        visitor.visit_unit()
    }
}

/// What stands between two brackets.
struct Elements<'a, 'de> {
    reader: &'a mut Reader<'de>,
    close: u8,
    first: bool,
}

impl Elements<'_, '_> {
    /// The visitor has to have taken them all.
    #[inline(never)]
    fn finish(&mut self) -> Result<(), Error> {
        if self.another()? {
            return Err(self.reader.fault("more values than expected"));
        }
        self.reader.leave();
        Ok(())
    }

    fn another(&mut self) -> Result<bool, Error> {
        // The bracket is behind us.
        if self.close == 0 {
            return Ok(false);
        }
        let another = self.reader.another(self.close, &mut self.first)?;
        if !another {
            self.close = 0;
        }
        Ok(another)
    }
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.another()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> MapAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if !self.another()? {
            return Ok(None);
        }
        let key = self.reader.key()?;
        seed.deserialize(de::IntoDeserializer::<Error>::into_deserializer(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(&mut *self.reader)
    }
}

/// `{"variant": value}`
struct Tagged<'a, 'de>(&'a mut Reader<'de>);

impl<'de> EnumAccess<'de> for Tagged<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let variant = self.0.key()?;
        let variant: Result<_, Error> = seed.deserialize(variant.into_deserializer());
        Ok((variant?, self))
    }
}

impl<'de> VariantAccess<'de> for Tagged<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        serde::Deserialize::deserialize(self.0)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_struct("", fields, visitor)
    }
}
