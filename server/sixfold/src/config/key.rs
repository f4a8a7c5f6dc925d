//! A key of the configuration, and the notation of the table of keys in `keys.rs`.

use super::report::Problems;
use super::table::{Entry, Table};

/// Moment at which a changed key takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At a reload.
    Reload,
    /// When a process starts, that of an upgrade included: the key decides about sockets, threads or memory.
    Upgrade,
    /// When the service starts: the process of an upgrade has the user of its predecessor, and attaches no XDP program.
    Restart,
}

/// A key of a table that `S` has the values of.
pub struct Key<S> {
    /// The table, like `dns64.on-failure`.
    pub table: &'static str,
    /// The name.
    pub name: &'static str,
    /// The first sentences about it in sixfold.toml(5).
    pub text: &'static str,
    /// Moment at which a change takes effect.
    pub effect: Effect,
    /// See `Form::shape`.
    pub shape: fn() -> String,
    /// See `Form::bounds`.
    pub bounds: fn() -> Option<[String; 2]>,
    /// Reads the value into its field.
    pub read: fn(&mut S, Entry<'_>),
    /// See `Form::line`.
    pub line: fn(&S) -> String,
}

/// Reads the keys of a table.
pub fn read<'k, S: 'k>(table: &mut Table<'_>, values: &mut S, keys: impl Iterator<Item = &'k Key<S>>) {
    for key in keys {
        if let Some(entry) = table.get(key.name) {
            (key.read)(values, entry);
        }
    }
}

/// True if the file has one of the keys in the table with this name.
pub fn has_any<S>(slot: &str, keys: &[Key<S>], problems: &Problems) -> bool {
    keys.iter().any(|key| problems.is_set(&format!("{slot}.{}", key.name)))
}

/// One key: the type that has its value, table, name, field, type of the field, form, moment of effect, and text.
macro_rules! key {
    ($of:ty, $table:literal, $name:literal, [$($field:ident).+], $type:ty, $form:expr, [$($effect:ident)?], [$($text:literal)*]) => {
        $crate::config::key::Key::<$of> {
            table: $table,
            name: $name,
            text: concat!($($text, "\n"),*),
            effect: $crate::config::key::effect!($($effect)?),
            shape: || $crate::config::form::Form::<$type>::shape(&$form),
            bounds: || $crate::config::form::Form::<$type>::bounds(&$form),
            read: |values, entry| {
                if let Some(value) = $crate::config::form::Form::<$type>::read(&$form, entry) {
                    values.$($field).+ = value;
                }
            },
            line: |values| $crate::config::form::Form::<$type>::line(&$form, $name, &values.$($field).+),
        }
    };
}

macro_rules! effect {
    () => {
        $crate::config::key::Effect::Reload
    };
    ($effect:ident) => {
        $crate::config::key::Effect::$effect
    };
}

/// The type that has the values of a table: a field for each key, with its default, and fields behind `with` that follow from them.
macro_rules! values {
    (
        [$($about:literal)*] $name:ident
        { $([$($text:literal)*] $field:ident: $type:ty = $default:expr;)* }
        { $($(#[doc = $note:literal])* $other:ident: $other_type:ty = $start:expr;)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $text])* pub $field: $type,)*
            $($(#[doc = $note])* pub $other: $other_type,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)* $($other: $start,)* }
            }
        }
    };
}

/// The tables that stand in a file once, each with the field of `Config`, the type of its values, and its keys.
macro_rules! tables {
    ($(
        $(#[doc = $about:literal])*
        $table:literal $section:ident: $name:ident {
            $($(#[doc = $text:literal])* $key:literal $field:ident: $type:ty = $default:expr, $form:expr $(, $effect:ident)?;)*
            $(with { $($other:tt)* })?
        }
    )*) => {
        /// The effective configuration. The value of an empty file is its default, but for what follows from several keys.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Config {
            $($(#[doc = $about])* pub $section: $name,)*
        }

        $($crate::config::key::values! {
            [$($about)*] $name { $([$($text)*] $field: $type = $default;)* } { $($($other)*)? }
        })*

        /// The keys of these tables.
        const KEYS: &[$crate::config::key::Key<Config>] = &[$($(
            $crate::config::key::key!(
                Config, $table, $key, [$section.$field], $type, $form, [$($effect)?], [$($text)*]
            ),
        )*)*];
    };
}

/// The keys of a table whose values are fields of another one.
macro_rules! further {
    (
        $(#[doc = $about:literal])*
        $constant:ident $table:literal {
            $($(#[doc = $text:literal])* $key:literal [$($field:ident).+]: $type:ty, $form:expr;)*
        }
    ) => {
        $(#[doc = $about])*
        const $constant: &[$crate::config::key::Key<Config>] = &[$(
            $crate::config::key::key!(Config, $table, $key, [$($field).+], $type, $form, [], [$($text)*]),
        )*];
    };
}

/// A table that may stand in a file several times, with the type of its values, and its keys.
macro_rules! repeated {
    (
        $(#[doc = $about:literal])*
        $table:literal $name:ident {
            $($(#[doc = $text:literal])* $key:literal $field:ident: $type:ty = $default:expr, $form:expr;)*
        }
    ) => {
        $crate::config::key::values! { [$($about)*] $name { $([$($text)*] $field: $type = $default;)* } {} }

        impl $name {
            /// Its keys.
            pub(super) const KEYS: &[$crate::config::key::Key<$name>] = &[$(
                $crate::config::key::key!($name, $table, $key, [$field], $type, $form, [], [$($text)*]),
            )*];
        }
    };
}

pub(super) use {effect, further, key, repeated, tables, values};
