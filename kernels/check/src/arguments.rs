//! The bytes of a kernel's arguments, as C lays them out.

use roundelay_ptx::program::Function;

use crate::addresses::{Layout, in_order};
use crate::expression::Numbers;
use crate::harness::{Argument, BufferPlace, Harness, KernelCall};

/// The most bytes of the parameters of a kernel.
const MOST: usize = 32_764;

/// The numbers of a step: those for addresses and sizes.
pub(crate) struct At<'a> {
    pub(crate) harness: &'a Harness,
    pub(crate) layout: &'a Layout,
    pub(crate) numbers: Numbers,
}

impl At<'_> {
    pub(crate) fn rank(&self) -> u32 {
        self.numbers[0] as u32
    }

    fn ranks(&self) -> u32 {
        self.numbers[1] as u32
    }

    /// The number of a place's room, the offset in it, and the bytes from there to the end of the buffer.
    pub(crate) fn place(&self, place: &BufferPlace) -> Result<(usize, i64, i64), String> {
        let rank = place.rank.as_ref().map(|rank| rank.value(&self.numbers)).transpose()?;
        let rank = rank.unwrap_or(self.rank().into());
        let rank = u32::try_from(rank).ok().filter(|rank| *rank < self.ranks());
        let rank =
            rank.ok_or_else(|| format!("`{}` is taken of a rank that is not there", place.buffer))?;
        let buffer = self.harness.buffer(&place.buffer).unwrap_or(0);
        if rank != self.rank() && !self.harness.memory[buffer].peers {
            return Err(format!(
                "`{0}` of a peer is reached, and `{0}` has no `peers = true`",
                place.buffer
            ));
        }
        let (room, bytes) = self.layout.range(buffer, rank);
        let (start, end) = (bytes.start as i64, bytes.end as i64);
        let offset = place.offset.value(&self.numbers)?;
        let at = offset
            .checked_add(start)
            .zip(end.checked_sub(start).and_then(|all| all.checked_sub(offset)));
        let (at, left) = at.ok_or_else(|| format!("byte {offset} of `{}`", place.buffer))?;
        Ok((room, at, left))
    }

    /// The bytes of the parameters of a function.
    pub(crate) fn parameters(
        &self,
        call: &KernelCall,
        function: &Function,
    ) -> Result<Vec<u8>, String> {
        let takes = function.parameters.len();
        if takes != call.args.len() {
            let given = call.args.len();
            return Err(format!(
                "`{}` takes {takes} arguments, and `args` has {given}",
                call.kernel
            ));
        }
        let mut bytes = Vec::new();
        for (number, (argument, parameter)) in
            call.args.iter().zip(&function.parameters).enumerate()
        {
            let (part, align) = self.bytes(argument)?;
            let (has, wants) = (part.len(), parameter.bytes as usize);
            let is_struct = matches!(
                argument,
                Argument::Struct(..) | Argument::Pointers(..) | Argument::Bytes(_)
            );
            // The end of a struct is padded to its alignment, of which the declaration alone knows.
            let padded = is_struct
                && has <= wants
                && wants < has.next_multiple_of(align.max(16) as usize) + 1;
            if has != wants && !padded {
                let which = format!("argument {number} of `{}`", call.kernel);
                return Err(format!("{which} has {has} bytes, and the kernel takes {wants} there"));
            }
            bytes.resize(parameter.offset as usize, 0);
            bytes.extend(part);
            bytes.resize(parameter.offset as usize + wants, 0);
            if bytes.len() > MOST {
                return Err(format!("the arguments of `{}` are too long", call.kernel));
            }
        }
        Ok(bytes)
    }

    /// The bytes of an argument, and its alignment.
    fn bytes(&self, argument: &Argument) -> Result<(Vec<u8>, u32), String> {
        Ok(match argument {
            Argument::Pointer(place) => {
                let (room, offset, _) = self.place(place)?;
                let address = self.layout.rooms[room].address.wrapping_add_signed(offset);
                (address.to_le_bytes().to_vec(), 8)
            }
            Argument::Multicast(name) => {
                let alias = self.layout.aliases.iter().find(|alias| alias.name == *name);
                (alias.map_or(0, |alias| alias.address).to_le_bytes().to_vec(), 8)
            }
            Argument::Pointers(name, order, pad) => {
                let buffer = self.harness.buffer(name).unwrap_or(0);
                let ranks = self.ranks();
                let all = in_order(*order, self.rank(), ranks);
                let mut bytes: Vec<u8> =
                    all.flat_map(|rank| self.layout.address(buffer, rank).to_le_bytes()).collect();
                let entries = pad.unwrap_or(ranks).max(ranks);
                bytes.resize(8 * entries as usize, 0);
                (bytes, 8)
            }
            Argument::Number(bytes, value) => {
                let value = value.value(&self.numbers)?;
                let bits = 8 * bytes;
                let fits = bits == 64 || (-(1i64 << (bits - 1))..1i64 << bits).contains(&value);
                if !fits {
                    return Err(format!("{value} does not fit an argument of {bits} bits"));
                }
                (value.to_le_bytes()[..*bytes as usize].to_vec(), *bytes)
            }
            Argument::Float(bytes, bits) => {
                (bits.to_le_bytes()[..*bytes as usize].to_vec(), *bytes)
            }
            Argument::Struct(parts, align) => {
                let (mut all, mut most) = (Vec::new(), align.unwrap_or(1));
                for part in parts {
                    let (bytes, align) = self.bytes(part)?;
                    most = most.max(align);
                    all.resize(all.len().next_multiple_of(align.max(1) as usize), 0);
                    all.extend(bytes);
                }
                all.resize(all.len().next_multiple_of(most as usize), 0);
                (all, most)
            }
            Argument::Bytes(bytes) => (bytes.clone(), 16),
        })
    }
}
