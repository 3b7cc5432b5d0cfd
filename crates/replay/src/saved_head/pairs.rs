//! Pairs of strings in one buffer, each pair preceded by its two lengths.

/// The size of the two lengths before a pair.
pub(super) const LENGTHS: usize = 8;

/// The second length of a pair whose second string (a header value) is shared and not in the buffer.
const SHARED: u64 = u32::MAX as u64;

/// An iterator over the pairs in the rest of a buffer. The second string is `None` if it is shared.
#[derive(Clone)]
pub(super) struct Pairs<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (lengths, rest) = self.0.split_first_chunk()?;
        let lengths = u64::from_le_bytes(*lengths);
        let (first, rest) = rest.split_at_checked(usize::try_from(lengths >> 32).ok()?)?;
        let second = lengths & SHARED;
        if second == SHARED {
            self.0 = rest;
            return Some((first, None));
        }
        let (second, rest) = rest.split_at_checked(usize::try_from(second).ok()?)?;
        self.0 = rest;
        Some((first, Some(second)))
    }
}

/// Writes a pair to the front of a buffer. Returns the rest of the buffer, or `None` if the pair does not fit.
#[inline(always)]
pub(super) fn put<'a>(free: &'a mut [u8], first: &[u8], second: &[u8]) -> Option<&'a mut [u8]> {
    let free = put_lengths(free, first.len(), second.len() as u64)?;
    put_string(put_string(free, first)?, second)
}

/// Writes a pair whose second string is not in the buffer.
pub(super) fn put_alone<'a>(free: &'a mut [u8], first: &[u8]) -> Option<&'a mut [u8]> {
    put_string(put_lengths(free, first.len(), SHARED)?, first)
}

/// Writes a pair whose first string has two parts.
#[inline(always)]
pub(super) fn put_joined<'a>(free: &'a mut [u8], first: [&[u8]; 2], second: &[u8]) -> Option<&'a mut [u8]> {
    let free = put_lengths(free, first[0].len() + first[1].len(), second.len() as u64)?;
    let mut free = put_string(free, first[0])?;
    if !first[1].is_empty() {
        free = put_string(free, first[1])?;
    }
    put_string(free, second)
}

#[inline(always)]
fn put_lengths(free: &mut [u8], first: usize, second: u64) -> Option<&mut [u8]> {
    let (lengths, rest) = free.split_first_chunk_mut()?;
    *lengths = ((first as u64) << 32 | second).to_le_bytes();
    Some(rest)
}

#[inline(always)]
fn put_string<'a>(free: &'a mut [u8], string: &[u8]) -> Option<&'a mut [u8]> {
    let (front, rest) = free.split_at_mut_checked(string.len())?;
    copy(front, string);
    Some(rest)
}

/// Copies a string. Most strings are short, so a call to `memcpy` would cost more.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    match from.len() {
        33.. => to.copy_from_slice(from),
        16.. => copy_ends::<16>(to, from),
        8.. => copy_ends::<8>(to, from),
        4.. => copy_ends::<4>(to, from),
        2.. => copy_ends::<2>(to, from),
        _ => to.copy_from_slice(from),
    }
}

/// Copies a string of N to 2 N bytes as its first and last N bytes, which may overlap.
#[inline(always)]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
        *to = *from;
    }
}
